/**
 * Listening to a session, whichever window its turns come from.
 */

import { commands, type AgentEvent } from './bindings.js';
import { AgentError, settle } from './error.js';
import { Feed } from './feed.js';
import { isTerminal } from './sequence.js';

/** Silence during a turn, in milliseconds, after which the agent is asked how far it is. */
const SILENCE_MS = 2_000;

/** Silence between turns, in milliseconds, after which the agent is asked whether one began unseen. */
const IDLE_CHECK_MS = 10_000;

/** How long the last event of a turn that a close cut off is waited for, in milliseconds. */
const LAST_EVENT_MS = 1_000;

/** One feed of a session's events, from now on. It outlasts a close: the session may be resumed. */
export class Listening {
  readonly #sessionId: string;
  readonly #feed: Feed;
  #open = true;
  #insideTurn = false;
  #turnEnded: (() => void) | null = null;

  constructor(sessionId: string, deliver: (event: AgentEvent) => void) {
    this.#sessionId = sessionId;
    this.#feed = new Feed(sessionId, {
      accepts: (event) => event.sessionId === sessionId,
      deliver: (event) => {
        this.#insideTurn = !isTerminal(event);
        deliver(event);
        if (!this.#insideTurn) this.#turnEnded?.();
      },
      patience: () => (this.#open && this.#insideTurn ? SILENCE_MS : IDLE_CHECK_MS),
      isBehind: (info, last) => {
        const wasOpen = this.#open;
        this.#open = info?.sessionId === sessionId;
        // The agent ended what was subscribed before the session was closed and resumed.
        return info !== null && this.#open && (!wasOpen || info.lastSequence > (last ?? 0));
      },
      knowsEnd: () => false,
      stuck: () => undefined,
    });
  }

  /** Begins with what comes after this moment. Fails with `SESSION_NOT_FOUND` if the session is not open. */
  async begin(): Promise<void> {
    try {
      const info = await settle(commands.currentSession());
      if (info?.sessionId !== this.#sessionId) throw notOpen(this.#sessionId);
      await this.#feed.attachAfter(info.lastSequence);
    } catch (error) {
      this.#feed.close();
      throw error;
    }
  }

  /** Ends when the session was closed: the last event of its turn may still be on its way. */
  async finish(): Promise<void> {
    if (this.#insideTurn) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#turnEnded = resolve;
        timer = setTimeout(resolve, LAST_EVENT_MS);
      });
      clearTimeout(timer);
    }
    this.#feed.close();
  }

  /** Ends at once. */
  close(): void {
    this.#turnEnded?.();
    this.#feed.close();
  }
}

/** The error of everything that needs a session to be open. */
export function notOpen(sessionId: string): AgentError {
  return new AgentError({
    code: 'SESSION_NOT_FOUND',
    message: `the session "${sessionId}" is not open; open it with resumeSession()`,
    retryable: false,
    source: 'agent',
  });
}
