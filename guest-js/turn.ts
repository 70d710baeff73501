/**
 * A turn, from the page's side: the answer to one message, as events, text or result.
 */

import type { Channel } from '@tauri-apps/api/core';
import {
  commands,
  type AgentEvent,
  type ChannelMessage,
  type TurnAccepted,
  type TurnOutcome,
} from './bindings.js';
import { AgentError, reportUncaught, settle } from './error.js';
import { Feed, SILENCE_MS } from './feed.js';
import { EventQueue, textOnly } from './queue.js';
import { reduceTurn, type TurnState } from './reduce.js';
import { lastEventOf, NEVER_SENT, resultOf, type TurnResult } from './result.js';
import { isOfTurn, isTerminal } from './sequence.js';

/** Repairs without any new event after which an ended turn is closed from its outcome. */
const REPAIRS_BEFORE_GIVING_UP = 2;

/** An event of one type. */
export type EventOf<T extends AgentEvent['type']> = Extract<AgentEvent, { type: T }>;

/** Names {@link Turn.on} takes. */
export type TurnEventName = AgentEvent['type'] | 'event';

/** What a listener of {@link Turn.on} gets. */
export type TurnEventFor<N extends TurnEventName> = N extends AgentEvent['type'] ? EventOf<N> : AgentEvent;

type Listener = (event: AgentEvent) => void;

/** How a turn comes to be. */
export interface TurnOrigin {
  sessionId: string;
  /** Names the message, so that it can be cancelled before its turn has an id. */
  requestId: string | null;
  /** The turn, when it runs already. */
  turnId: string | null;
  /** The command that starts it; absent when it runs already. */
  command?: (onEvent: Channel<ChannelMessage>) => Promise<TurnAccepted>;
  /** Cancels the turn when it fires. */
  signal?: AbortSignal | undefined;
}

/**
 * The answer to one message.
 *
 * Use it in whichever way fits, also in several at once:
 * - `for await (const event of turn)`: all events in order, from the first on; once;
 * - `for await (const piece of turn.textStream)`: only the text; instead of the above;
 * - `turn.on('textDelta', ...)`: listeners;
 * - `await turn.result()` or `await turn.text()`: only the end.
 *
 * # Order
 * `turnStarted` is first; `turnComplete` or `turnCancelled` is last, exactly once. Events
 * arrive in order of `sequence`, each word once, also where messages got lost on the way.
 *
 * # Errors
 * A turn that is refused or fails rejects {@link result} and {@link text}, and throws the
 * same {@link AgentError} out of the iteration, after its events. Not looking at either is fine.
 *
 * # Ownership
 * The turn belongs to the agent: leaving the iteration with `break`, dropping this object or
 * reloading the page does not end it. Only {@link cancel} or the abort signal does.
 */
export class Turn implements AsyncIterable<AgentEvent> {
  /** The session. */
  readonly sessionId: string;

  readonly #origin: TurnOrigin;
  readonly #feed: Feed;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #result: Promise<TurnResult>;
  #settleResult!: { resolve: (result: TurnResult) => void; reject: (error: AgentError) => void };
  #turnId: string | null;
  #state: TurnState | undefined;
  #outcome: TurnOutcome | null = null;
  #outcomeError: AgentError | null = null;
  #ended = false;
  #accepted: Promise<unknown> = Promise.resolve();
  #cancelling: Promise<void> | null = null;
  readonly #queue = new EventQueue();

  /** @internal Turns come from {@link Session}. */
  constructor(origin: TurnOrigin) {
    this.sessionId = origin.sessionId;
    this.#origin = origin;
    this.#turnId = origin.turnId;
    this.#result = new Promise((resolve, reject) => {
      this.#settleResult = { resolve, reject };
    });
    // Whoever only iterates never asks for the result; that must not count as unhandled.
    this.#result.catch(() => undefined);
    this.#feed = new Feed(origin.sessionId, {
      deliver: (event) => this.#deliver(event),
      accepts: (message) => this.#isOfTurn(message),
      patience: () => (this.#ended || this.#turnId === null ? null : { ms: SILENCE_MS, then: 'attach' }),
      // A turn is never silent, so the agent is not asked.
      isBehind: () => true,
      persists: (repairs) => this.#persists(repairs),
    });
    const { signal } = origin;
    if (signal?.aborted && origin.command) {
      this.#end(NEVER_SENT);
      return;
    }
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#accepted = this.#open();
    if (signal?.aborted) this.#onAbort();
  }

  /** The turn's id; `null` until the agent has accepted the message. */
  get id(): string | null {
    return this.#turnId;
  }

  /** What the turn looks like so far; `undefined` before its first event. See {@link reduceTurn}. */
  get state(): TurnState | undefined {
    return this.#state;
  }

  /**
   * Calls `listener` for each coming event of one type, or of all types for `'event'`.
   *
   * A listener that throws disturbs nothing: its error is reported as uncaught.
   *
   * @returns a function that removes the listener again, like {@link off}.
   */
  on<N extends TurnEventName>(name: N, listener: (event: TurnEventFor<N>) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener));
    return () => this.off(name, listener);
  }

  /** Removes a listener that {@link on} added. */
  off<N extends TurnEventName>(name: N, listener: (event: TurnEventFor<N>) => void): void {
    this.#listeners.get(name)?.delete(listener as Listener);
  }

  /**
   * Waits for the end.
   *
   * # Errors
   * {@link AgentError}: why the message was refused (nothing was stored, it can be sent
   * again) or why the turn failed.
   */
  result(): Promise<TurnResult> {
    return this.#result;
  }

  /** Waits for the end and gives the text; the same as `(await result()).text`. */
  async text(): Promise<string> {
    return (await this.#result).text;
  }

  /**
   * Cancels the turn, also before the agent has accepted it. Cancelling again, or after the
   * end, does nothing.
   *
   * The promise is fulfilled when the agent knows; the turn ends a moment later with
   * `turnCancelled`, once running tools have finished.
   *
   * # Errors
   * {@link AgentError} if the agent could not be told; the call can be repeated.
   */
  cancel(): Promise<void> {
    this.#cancelling ??= this.#cancel().catch((error: unknown) => {
      this.#cancelling = null;
      throw error;
    });
    return this.#cancelling;
  }

  /**
   * The text as it arrives, over all model calls of the turn, without reasoning.
   * It is an iteration of the turn: a turn is iterated once, by this or by `for await` itself.
   */
  get textStream(): AsyncIterable<string> {
    return { [Symbol.asyncIterator]: () => textOnly(this[Symbol.asyncIterator]()) };
  }

  /**
   * All events from the first on; those that came before are waiting.
   *
   * # Errors
   * Throws `INVALID_INPUT` if the turn is being iterated already.
   */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    return this.#queue.read();
  }

  /** @internal Stops listening; the turn goes on, and iterating it ends here. */
  leave(): void {
    this.#feed.close();
    this.#queue.end(null);
  }

  async #open(): Promise<void> {
    const { command } = this.#origin;
    try {
      if (command) this.#begun((await this.#feed.start(command)).turnId);
      else {
        if (this.#turnId !== null) this.#begun(this.#turnId);
        await this.#feed.attachToRunningTurn();
      }
    } catch (error) {
      // A turn that runs already has its outcome to go by; a refused one has nothing else.
      if (command) this.#end(AgentError.from(error));
    }
  }

  /** The agent has the turn: from now on it is asked for the outcome, and silence is watched. */
  #begun(turnId: string): void {
    this.#turnId = turnId;
    this.#feed.watch();
    settle(commands.waitTurn(turnId)).then(
      (outcome) => {
        this.#outcome = outcome;
      },
      (error: unknown) => {
        this.#outcomeError = AgentError.from(error);
      },
    );
  }

  readonly #onAbort = (): void => {
    this.cancel().catch(reportUncaught);
  };

  async #cancel(): Promise<void> {
    if (this.#ended) return;
    if (this.#turnId === null) {
      const { requestId } = this.#origin;
      const known = await settle(commands.cancel(null, requestId));
      if (known || this.#ended) return;
      // The cancel overtook its message: wait until the turn has an id.
      await this.#accepted;
    }
    if (!this.#ended && this.#turnId !== null) await settle(commands.cancel(this.#turnId, null));
  }

  #deliver(event: AgentEvent): void {
    if (this.#ended) return;
    this.#turnId ??= event.turnId;
    this.#state = reduceTurn(this.#state, event);
    this.#queue.push(event);
    // The end is settled before listeners hear of it, so that they can send the next message.
    if (isTerminal(event)) this.#end(resultOf(this.#state));
    for (const name of [event.type, 'event']) {
      for (const listener of [...(this.#listeners.get(name) ?? [])]) {
        try {
          listener(event);
        } catch (error) {
          reportUncaught(error);
        }
      }
    }
  }

  #end(result: TurnResult | AgentError): void {
    if (this.#ended) return;
    this.#ended = true;
    const error = AgentError.is(result) ? result : null;
    this.#queue.end(error);
    if (error) this.#settleResult.reject(error);
    else this.#settleResult.resolve(result as TurnResult);
    this.#feed.close();
    this.#origin.signal?.removeEventListener('abort', this.#onAbort);
  }

  #isOfTurn(message: ChannelMessage): boolean {
    return isOfTurn(message) && (this.#turnId === null || message.turnId === this.#turnId);
  }

  /** Where nothing more can be had from the agent's log, the turn ends with what `wait_turn` said. */
  #persists(repairs: number): boolean {
    if (repairs < REPAIRS_BEFORE_GIVING_UP) return true;
    const outcome = this.#outcome;
    if (this.#outcomeError) this.#end(this.#outcomeError);
    if (!outcome) return !this.#outcomeError;
    settle(commands.currentSession())
      .catch(() => null)
      .then((info) => this.#deliver(lastEventOf(this.sessionId, outcome, info)), reportUncaught);
    return false;
  }
}
