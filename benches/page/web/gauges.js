// What is measured beside the events: frames, the main thread, memory; and how samples become figures.
import { invoke } from "@tauri-apps/api/core";

/** Gaps between animation frames until `stop`. A frame comes late when the main thread is busy. */
export function frames() {
  const gaps = [];
  let last = performance.now();
  let running = true;
  const beat = () => {
    if (!running) return;
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    requestAnimationFrame(beat);
  };
  requestAnimationFrame(beat);
  return () => {
    running = false;
    // A frame that is overdue at the end counts, too.
    gaps.push(performance.now() - last);
    return { frames: gaps.length, frame_p50_ms: quantile(gaps, 0.5), frame_p99_ms: quantile(gaps, 0.99), frame_max_ms: quantile(gaps, 1) };
  };
}

/** The longest time in which the main thread ran nothing else, until `stop`. */
export function mainThread() {
  const channel = new MessageChannel();
  let longest = 0;
  let last = performance.now();
  const beat = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  channel.port1.onmessage = () => {
    beat();
    channel.port2.postMessage(0);
  };
  channel.port2.postMessage(0);
  return () => {
    beat();
    channel.port1.close();
    return { main_gap_max_ms: round(longest) };
  };
}

/** Resident memory of the app and of its web process, in KiB. */
export const memory = () => invoke("memory");

/** The wall clock in milliseconds. It shows whole ones: half of one is the best guess of the rest. */
export const now = () => Date.now() + 0.5;

/** The value below which `part` of the samples lie. */
export function quantile(samples, part) {
  const sorted = [...samples].sort((a, b) => a - b);
  return round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
}

export const round = (value) => Math.round(value * 100) / 100;

export const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));
