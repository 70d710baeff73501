/// <reference lib="esnext.disposable" preserve="true" />
/**
 * An open session: sending, listening, closing.
 */

import {
  commands,
  type AgentEvent,
  type CompactOutcome,
  type ContentBlock,
  type ReasoningEffort,
  type SendOptions as SendOptionsData,
  type SessionInfo,
} from './bindings.js';
import { AgentError, reportUncaught, settle } from './error.js';
import { Feed } from './feed.js';
import { defined, newRequestId } from './request.js';
import { isTerminal } from './sequence.js';
import { sessionHistory, type HistoryOptions, type HistoryPage } from './stored.js';
import { Turn } from './turn.js';

/** How a message is sent. Everything is optional. */
export interface SendOptions {
  /** Another registered model, for this and later turns. */
  modelId?: string | undefined;
  /** Sampling temperature. */
  temperature?: number | undefined;
  /** Upper limit of the answer, in tokens. */
  maxTokens?: number | undefined;
  /** How much the model should reason, for models that can. */
  reasoningEffort?: ReasoningEffort | undefined;
  /** Cancels the turn when it fires; if it has fired already, nothing is sent. */
  signal?: AbortSignal | undefined;
}

/** Older webviews lack the symbol; then `await using` does not exist there either. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** Silence during a turn, in milliseconds, after which the agent is asked how far it is. */
const SILENCE_MS = 2_000;

/** Silence between turns, in milliseconds, after which the agent is asked whether one began unseen. */
const IDLE_CHECK_MS = 10_000;

/**
 * An open session.
 *
 * It is a handle: several may stand for the same session, also in several windows, and
 * dropping one closes nothing.
 */
export class Session implements AsyncDisposable {
  /** The session's id. */
  readonly id: string;
  /** The model it was opened with. {@link info} tells the present one. */
  readonly modelId: string;
  readonly #listeners = new Set<(event: AgentEvent) => void>();
  #feed: Feed | null = null;

  /** @internal Sessions come from {@link createSession}, {@link resumeSession} and {@link currentSession}. */
  constructor(info: SessionInfo) {
    this.id = info.sessionId;
    this.modelId = info.modelId;
  }

  /**
   * Sends a message and returns its turn at once.
   *
   * A refusal (`SESSION_BUSY` while a turn runs, `INVALID_INPUT`, `CONTENT_NOT_SUPPORTED`,
   * `SKILL_NOT_FOUND`, `MODEL_NOT_SUPPORTED`) surfaces in the turn; nothing was stored then.
   *
   * @param input text, or blocks of text, images and files.
   */
  send(input: string | ContentBlock[], options: SendOptions = {}): Turn {
    const { signal, ...rest } = options;
    const requestId = newRequestId();
    const data: SendOptionsData = defined(rest);
    return new Turn({
      sessionId: this.id,
      requestId,
      turnId: null,
      signal,
      command: (onEvent) => settle(commands.sendMessage(this.id, input, data, requestId, onEvent)),
    });
  }

  /** Runs the last user message again after a failed or cancelled turn; it is not stored twice. */
  retry(options: { signal?: AbortSignal | undefined } = {}): Turn {
    const requestId = newRequestId();
    return new Turn({
      sessionId: this.id,
      requestId,
      turnId: null,
      signal: options.signal,
      command: (onEvent) => settle(commands.retryTurn(this.id, requestId, onEvent)),
    });
  }

  /** The running turn, attached from its first event, or `null` if none runs. */
  async activeTurn(options: { signal?: AbortSignal | undefined } = {}): Promise<Turn | null> {
    const info = await settle(commands.currentSession());
    if (info?.sessionId !== this.id || info.turnId == null) return null;
    return new Turn({ sessionId: this.id, requestId: null, turnId: info.turnId, signal: options.signal });
  }

  /**
   * Calls `listener` for every coming event of the session, whichever window sent the message.
   * What a running turn has shown before comes from {@link activeTurn}; {@link reduceTurn}
   * takes both without doubling anything.
   *
   * @returns a function that ends it.
   */
  onEvent(listener: (event: AgentEvent) => void): () => void {
    this.#listeners.add(listener);
    if (this.#feed === null) void this.#listen();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#feed?.close();
      this.#feed = null;
    };
  }

  /** What the session is doing, its newest event, its size and title. Fails with `SESSION_NOT_FOUND` once closed. */
  async info(): Promise<SessionInfo> {
    const info = await settle(commands.currentSession());
    if (info?.sessionId !== this.id) throw notOpen(this.id);
    return info;
  }

  /** Stored events of this session, in order, page by page. */
  history(options: HistoryOptions = {}): Promise<HistoryPage> {
    return sessionHistory(this.id, options);
  }

  /**
   * Makes the context smaller now, without waiting for the threshold.
   *
   * # Errors
   * `SESSION_BUSY` while a turn runs, `MODEL_NOT_SUPPORTED`, `HOOK_ABORTED`, `REQUEST_CANCELLED`,
   * `STORAGE_ERROR`. After an error the context is what it was.
   */
  compact(): Promise<CompactOutcome> {
    return settle(commands.compact(this.id));
  }

  /**
   * Closes the session: a running turn is cancelled, everything is stored, memories are
   * extracted. Closing one that is closed already does nothing.
   *
   * # Errors
   * `STORAGE_ERROR` saying what could not be stored; the session is closed all the same.
   */
  async close(): Promise<void> {
    try {
      await settle(commands.closeSession(this.id));
    } catch (error) {
      if (!AgentError.is(error, 'SESSION_NOT_FOUND')) throw error;
    } finally {
      this.#feed?.close();
      this.#feed = null;
    }
  }

  /** Closes the session at the end of an `await using` block. */
  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  async #listen(): Promise<void> {
    let insideTurn = false;
    let open = true;
    const feed = new Feed(this.id, {
      accepts: (event) => event.sessionId === this.id,
      deliver: (event) => {
        insideTurn = !isTerminal(event);
        for (const listener of [...this.#listeners]) {
          try {
            listener(event);
          } catch (error) {
            reportUncaught(error);
          }
        }
      },
      patience: () => (open ? (insideTurn ? SILENCE_MS : IDLE_CHECK_MS) : null),
      isBehind: (info, last) => {
        open = info?.sessionId === this.id;
        return open && info !== null && info.lastSequence > (last ?? 0);
      },
      stuck: () => undefined,
    });
    this.#feed = feed;
    try {
      const info = await settle(commands.currentSession());
      if (info?.sessionId !== this.id) throw notOpen(this.id);
      await feed.attachAfter(info.lastSequence);
    } catch (error) {
      feed.close();
      if (this.#feed !== feed) return;
      this.#feed = null;
      reportUncaught(error);
    }
  }
}

function notOpen(sessionId: string): AgentError {
  return new AgentError({
    code: 'SESSION_NOT_FOUND',
    message: `the session "${sessionId}" is not open; open it with resumeSession()`,
    retryable: false,
    source: 'agent',
  });
}
