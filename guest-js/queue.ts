/**
 * Events that wait for their one reader.
 */

import type { AgentEvent } from './bindings.js';
import { invalidInput, type AgentError } from './error.js';

/** A queue that is read once: it keeps everything until the reader comes, nothing after it left. */
export class EventQueue {
  /** Events from {@link #at} on wait; `null` once the reader has left. */
  #waiting: AgentEvent[] | null = [];
  #at = 0;
  #ended = false;
  #error: AgentError | null = null;
  /** Reads that wait for the next event, in order. */
  #wakes: (() => void)[] = [];
  #hasReader = false;

  /** Adds an event, unless the reader has left. */
  push(event: AgentEvent): void {
    this.#waiting?.push(event);
    this.#wake();
  }

  /** Nothing follows; with an error, reading throws it once all events have been read. */
  end(error: AgentError | null): void {
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  /** The reader. Throws `INVALID_INPUT` if there is one already. */
  read(): AsyncIterator<AgentEvent, undefined> {
    if (this.#hasReader) {
throw invalidInput('a turn can be iterated once; use on() for further listeners, or result() for the end');
    }
    this.#hasReader = true;
    return {
      next: () => this.#next(),
      return: () => {
        this.#waiting = null;
        this.#wake();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #wake(): void {
    const wakes = this.#wakes;
    if (wakes.length === 0) return;
    this.#wakes = [];
    for (const wake of wakes) wake();
  }

  async #next(): Promise<IteratorResult<AgentEvent, undefined>> {
    for (;;) {
      const event = this.#waiting?.[this.#at];
      if (event) {
        this.#at += 1;
        return { done: false, value: event };
      }
      // Everything is read: only now is the array given up, so that reading stays cheap.
      this.#at = 0;
      if (this.#waiting) this.#waiting = [];
      if (this.#waiting === null || this.#ended) break;
      await new Promise<void>((resolve) => {
        this.#wakes.push(resolve);
      });
    }
    const error = this.#waiting !== null && this.#error;
    this.#waiting = null;
    if (error) throw error;
    return { done: true, value: undefined };
  }
}

/** Only the text of what a reader gets. */
export function textOnly(events: AsyncIterator<AgentEvent, undefined>): AsyncIterator<string, undefined> {
  return {
    async next() {
      for (;;) {
        const { done, value } = await events.next();
        if (done) return { done, value };
        if (value.type === 'textDelta' && value.delta !== '') return { done: false, value: value.delta };
      }
    },
    // Not a generator: that would wait for the next event before it lets go.
    async return() {
      await events.return?.();
      return { done: true, value: undefined };
    },
  };
}
