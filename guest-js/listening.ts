/**
 * Listening to a session, whichever window its turns come from.
 */

import { type AgentEvent } from './bindings.js';
import { AgentError } from './error.js';
import { Feed, SILENCE_MS, type Patience } from './feed.js';
import { isOfTurn, isTerminal } from './sequence.js';

/** Silence between turns, in milliseconds, after which the agent is asked whether one began unseen. */
const IDLE_CHECK_MS = 10_000;

/** The longest time between two looks for a session that is not open, in milliseconds. */
const CLOSED_CHECK_MS = 60_000;

/** Silence, in milliseconds, after which the rest of a turn that a close cut off is given up. */
const REST_MS = 1_000;

/** How long, in milliseconds, a message waits for a listener that was set before it. */
const ATTACH_LIMIT_MS = 2_000;

/** Sessions whose listeners are being attached. */
const attaching = new Map<string, Promise<unknown>>();

/**
 * Fulfilled once the listeners that were set so far are attached, so that they hear the whole
 * turn of a message that is sent then; `null` if they are. It never takes longer than two seconds.
 */
export function untilAttached(sessionId: string): Promise<void> | null {
  const pending = attaching.get(sessionId);
  if (pending === undefined) return null;
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      // It is waited for once, not before every message.
      if (attaching.get(sessionId) === pending) attaching.delete(sessionId);
      resolve();
    }, ATTACH_LIMIT_MS);
    void pending.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** One feed of a session's events, from now on. It outlasts a close: the session may be resumed. */
export class Listening {
  readonly #sessionId: string;
  readonly #feed: Feed;
  /** Looks in a row that found the session not open. */
  #closedChecks = 0;
  /** Whether a turn runs, as far as is known. */
  #insideTurn = false;
  /** The turn that ended last. */
  #ended: string | null = null;
  /** Number of the newest event there was when the agent was asked last. */
  #askedAt = 0;
  /** Up to this number the agent has nothing more for this session. */
  #nothingUpTo = 0;
  #delivered: (() => void) | null = null;

  constructor(sessionId: string, deliver: (event: AgentEvent) => void) {
    this.#sessionId = sessionId;
    this.#feed = new Feed(sessionId, {
      accepts: (message) => message.sessionId === sessionId,
      deliver: (event) => {
        this.#insideTurn = isOfTurn(event) && !isTerminal(event);
        if (isTerminal(event)) this.#ended = event.turnId;
        deliver(event);
        this.#delivered?.();
      },
      patience: () => this.#patience(),
      isBehind: (info, last) => {
        const wasOpen = this.#closedChecks === 0;
        const isOpen = info?.sessionId === sessionId;
        this.#closedChecks = isOpen ? 0 : this.#closedChecks + 1;
        this.#askedAt = info?.lastSequence ?? 0;
        // The agent ended what was subscribed before the session was closed and resumed.
        return isOpen && (!wasOpen || info.lastSequence > Math.max(last ?? 0, this.#nothingUpTo));
      },
      persists: () => {
        // No turn runs that could be heard, or the session is closed: from here on the agent is
        // asked. Numbers belong to the agent: what brought nothing were events of another session.
        this.#insideTurn = false;
        this.#nothingUpTo = this.#askedAt;
        return false;
      },
    });
  }

  /** Begins with what comes after this moment. Fails with `SESSION_NOT_FOUND` if the session is not open. */
  async begin(): Promise<void> {
    const attached = this.#feed.attachFromNowOn();
    const all = Promise.allSettled([attaching.get(this.#sessionId), attached]).then(() => {
      if (attaching.get(this.#sessionId) === all) attaching.delete(this.#sessionId);
    });
    attaching.set(this.#sessionId, all);
    try {
      const { turnId } = await attached;
      if (turnId != null && turnId !== this.#ended) this.#insideTurn = true;
      this.#feed.watch();
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

  #patience(): Patience {
    if (this.#closedChecks > 0) {
      return { ms: Math.min(IDLE_CHECK_MS * 2 ** (this.#closedChecks - 1), CLOSED_CHECK_MS), then: 'ask' };
    }
    return this.#insideTurn ? { ms: SILENCE_MS, then: 'attach' } : { ms: IDLE_CHECK_MS, then: 'ask' };
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
