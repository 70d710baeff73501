/**
 * Numbers of events: which part of an event is new.
 *
 * Deltas may arrive joined (`firstSequence` to `sequence`), and after a repair the same
 * words may arrive joined differently. This file decides what of an event was not seen yet.
 */

import type { AgentEvent, ChannelMessage } from './bindings.js';

/** An event that carries a piece of text. */
export type DeltaEvent = Extract<AgentEvent, { type: 'textDelta' | 'reasoningDelta' }>;

/** Whether an event carries a piece of text. */
export function isDelta(event: AgentEvent): event is DeltaEvent {
  return event.type === 'textDelta' || event.type === 'reasoningDelta';
}

/**
 * Whether a message tells something of a turn: what happens between turns has no turn id, and of
 * what was skipped only the outcome and the history are left.
 */
export function isOfTurn(message: ChannelMessage): boolean {
  return message.turnId !== '' && message.type !== 'skipped';
}

/** Whether an event is the last of its turn. */
export function isTerminal(
  event: AgentEvent,
): event is Extract<AgentEvent, { type: 'turnComplete' | 'turnCancelled' }> {
  return event.type === 'turnComplete' || event.type === 'turnCancelled';
}

/** Number of the first part of an event: `sequence`, unless parts were joined. */
export function firstSequenceOf(event: AgentEvent): number {
  return isDelta(event) ? Math.min(event.firstSequence ?? event.sequence, event.sequence) : event.sequence;
}

/** Takes events in rising order and gives of each what is new. */
export class Sequencer {
  /** Number of the newest event taken, `null` before the first. */
  last: number | null = null;
  /** The run of joinable deltas that the newest event belongs to. */
  #run: string | null = null;
  /** Length of the run's text so far. */
  #length = 0;
  /** Where in the run's text each known delta ends. */
  #ends = new Map<number, number>();

  /**
   * The part of `event` that was not taken before, or `null`.
   *
   * A delta that overlaps what is known is cut where the known part ends. Where that place
   * is unknown nothing is taken: the words come again on the path that showed the others.
   */
  take(event: AgentEvent): AgentEvent | null {
    const first = firstSequenceOf(event);
    if (this.last === null || first > this.last) {
      this.#extend(event, first);
      return event;
    }
    if (!isDelta(event)) return null;
    const start = this.#ends.get(first - 1);
    if (start === undefined) return null;
    if (event.sequence <= this.last) {
      this.#ends.set(event.sequence, start + event.delta.length);
      return null;
    }
    const rest = { ...event, firstSequence: this.last + 1, delta: event.delta.slice(this.#length - start) };
    this.#extend(rest, rest.firstSequence);
    return rest;
  }

  #extend(event: AgentEvent, first: number): void {
    if (isDelta(event)) {
      const run = `${event.turnId} ${event.type} ${event.step}`;
      if (run !== this.#run || first - 1 !== this.last) {
        this.#run = run;
        this.#length = 0;
        this.#ends = new Map([[first - 1, 0]]);
      }
      this.#length += event.delta.length;
      this.#ends.set(event.sequence, this.#length);
    } else if (this.#run !== null) {
      this.#run = null;
      this.#ends = new Map();
    }
    this.last = event.sequence;
  }
}
