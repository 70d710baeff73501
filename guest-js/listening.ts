/**
 * Listening to a session, whichever window its turns come from.
 */

import { commands, type AgentEvent } from './bindings.js';
import { AgentError, settle } from './error.js';
import { Feed, SILENCE_MS } from './feed.js';
import { isTerminal } from './sequence.js';

/** Silence between turns, in milliseconds, after which the agent is asked whether one began unseen. */
const IDLE_CHECK_MS = 10_000;

/** The longest time between two looks for a session that is not open, in milliseconds. */
const CLOSED_CHECK_MS = 60_000;

/** Silence, in milliseconds, after which the rest of a turn that a close cut off is given up. */
const REST_MS = 1_000;

/** One feed of a session's events, from now on. It outlasts a close: the session may be resumed. */
export class Listening {
  readonly #sessionId: string;
  readonly #feed: Feed;
  /** Looks in a row that found the session not open. */
  #closedChecks = 0;
  #insideTurn = false;
  /** The turn that ended last. */
  #ended: string | null = null;
  /** Up to this number the agent has nothing more for this session. */
  #nothingUpTo = 0;
  #delivered: (() => void) | null = null;

  constructor(sessionId: string, deliver: (event: AgentEvent) => void) {
    this.#sessionId = sessionId;
    this.#feed = new Feed(sessionId, {
      accepts: (event) => event.sessionId === sessionId,
      deliver: (event) => {
        this.#insideTurn = !isTerminal(event);
        if (isTerminal(event)) this.#ended = event.turnId;
        deliver(event);
        this.#delivered?.();
      },
      patience: () => this.#patience(),
      isBehind: (info, last) => {
        const wasOpen = this.#closedChecks === 0;
        const isOpen = info?.sessionId === sessionId;
        this.#closedChecks = isOpen ? 0 : this.#closedChecks + 1;
        // The agent ended what was subscribed before the session was closed and resumed.
        return isOpen && (!wasOpen || info.lastSequence > Math.max(last ?? 0, this.#nothingUpTo));
      },
      knowsEnd: () => false,
      // Numbers belong to the agent: what brought nothing were events of another session.
      stuck: (_repairs, info) => {
        this.#nothingUpTo = info?.lastSequence ?? 0;
      },
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

  /** Ends after a close, which cut off `turnId`: the rest of that turn may still be on its way. */
  async finish(turnId: string | null): Promise<void> {
    while (this.#insideTurn || (turnId !== null && turnId !== this.#ended)) {
      if (!(await this.#deliversWithin(REST_MS))) break;
    }
    this.#feed.close();
  }

  /** Ends at once. */
  close(): void {
    this.#feed.close();
  }

  #patience(): number {
    if (this.#closedChecks > 0) return Math.min(IDLE_CHECK_MS * 2 ** (this.#closedChecks - 1), CLOSED_CHECK_MS);
    return this.#insideTurn ? SILENCE_MS : IDLE_CHECK_MS;
  }

  async #deliversWithin(ms: number): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const delivered = await new Promise<boolean>((resolve) => {
      this.#delivered = () => resolve(true);
      timer = setTimeout(() => resolve(false), ms);
    });
    clearTimeout(timer);
    return delivered;
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
