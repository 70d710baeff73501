// Looks at the processes of this machine, and ends trees of them. Linux only.
// All of it works at once, without a promise: a process that is about to exit can still do it.
import { readFileSync, readdirSync } from "node:fs";

/** Every process below this one. The start time tells a process from a later one with the same id. */
export function descendants(ancestor) {
  const all = processes();
  const below = (pid) => all.filter(({ parent }) => parent === pid).flatMap((child) => [child, ...below(child.pid)]);
  return below(ancestor);
}

/** Those of the known processes that still run. */
export function alive(known) {
  const all = processes();
  return known.filter(({ pid, started }) => all.some((one) => one.pid === pid && one.started === started && one.state !== "Z"));
}

/** Kills those of the known processes that still run. */
export function killAll(known) {
  for (const { pid } of alive(known)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended between the look and the kill.
    }
  }
}

/** The resident memory of a process. */
export function residentBytes(pid) {
  return Number(read(`/proc/${pid}/status`)?.match(/^VmRSS:\s+(\d+) kB$/m)?.[1] ?? 0) * 1024;
}

function processes() {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === null) return [];
    // The program's name is in parentheses and may contain blanks: count the fields after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    return [{ pid: Number(pid), name, state: fields[0], parent: Number(fields[1]), started: fields[19] }];
  });
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
