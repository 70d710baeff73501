/// <reference lib="esnext.disposable" preserve="true" />
/**
 * An open session: sending, listening, closing.
 */

import type { Channel } from '@tauri-apps/api/core';
import {
  commands,
  type AgentEvent,
  type ChannelMessage,
  type CompactionOutcome,
  type ContentBlock,
  type ReasoningEffort,
  type ResponseFormat,
  type SendOptions as SendOptionsData,
  type SessionInfo,
} from './bindings.js';
import { AgentError, reportUncaught, settle } from './error.js';
import { Listening, notOpen, untilAttached } from './listening.js';
import { EventQueue } from './queue.js';
import { defined, newRequestId } from './request.js';
import { fullHistory, sessionHistory, type HistoryOptions, type HistoryPage } from './stored.js';
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
  /** The shape each answer must have, for models that can. */
  responseFormat?: ResponseFormat | undefined;
  /** Cancels the turn when it fires; if it has fired already, nothing is sent. */
  signal?: AbortSignal | undefined;
}

/** How something that can be cancelled is begun. */
export interface SignalOptions {
  /** Cancels it when it fires. */
  signal?: AbortSignal | undefined;
}

/** Who hears the events of a session. */
interface Listener {
  hear(event: AgentEvent): void;
  /** Nothing follows: the session was closed through this handle, or listening could not begin. */
  end?(error: AgentError | null): void;
}

/** Older webviews lack the symbol; then `await using` does not exist there either. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

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
  readonly #listeners = new Set<Listener>();
  #listening: Listening | null = null;

  /** @internal Sessions come from {@link createSession}, {@link resumeSession} and {@link currentSession}. */
  constructor(info: SessionInfo) {
    this.id = info.sessionId;
    this.modelId = info.modelId;
  }

  /**
   * Sends a message and returns its turn at once.
   *
   * A refusal (`SESSION_BUSY` while a turn or a compaction runs, `SESSION_NOT_FOUND` once
   * closed, `INVALID_INPUT`, `CONTENT_NOT_SUPPORTED`, `SKILL_NOT_FOUND`,
   * `MODEL_NOT_SUPPORTED`, `AGENT_SHUT_DOWN`) surfaces in the turn; nothing was stored then.
   *
   * # Order
   * Listeners that this page has set before hear the whole turn: the message waits until they are
   * attached, two seconds at most.
   *
   * @param input text, or blocks of text, images and files.
   */
  send(input: string | ContentBlock[], options: SendOptions = {}): Turn {
    const { signal, ...rest } = options;
    const data: SendOptionsData = defined(rest);
    return this.#begin(signal, (requestId, onEvent) =>
      commands.sendMessage(this.id, input, data, requestId, onEvent),
    );
  }

  /**
   * Runs the last user message again after a failed, cancelled or interrupted turn; it is not
   * stored twice. A message whose turn failed before it was stored (`HOOK_ABORTED`,
   * `STORAGE_ERROR`) runs like a new one.
   *
   * A refusal (`INVALID_INPUT` where the last turn was answered or there is none,
   * `SESSION_BUSY`, `SESSION_NOT_FOUND`, `MODEL_NOT_SUPPORTED`, `AGENT_SHUT_DOWN`) surfaces in
   * the turn.
   */
  retry(options: SignalOptions = {}): Turn {
    return this.#begin(options.signal, (requestId, onEvent) => commands.retryTurn(this.id, requestId, onEvent));
  }

  /**
   * The running turn, attached from its first event, or `null` if none runs. A signal that has
   * fired already cancels it.
   */
  async activeTurn(options: SignalOptions = {}): Promise<Turn | null> {
    const info = await settle(commands.currentSession());
    if (info?.sessionId !== this.id || info.turnId == null) return null;
    return new Turn({ sessionId: this.id, requestId: null, turnId: info.turnId, signal: options.signal });
  }

  /**
   * Calls `listener` for every coming event of the session, whichever window sent the message.
   * What a running turn has shown before comes from {@link activeTurn}; {@link reduceTurn}
   * takes both without doubling anything.
   *
   * It outlasts a close in another window: when the session is resumed, its events come
   * again within a minute, none is left out. Where listening cannot begin (the session is not open, the
   * command is denied) the error is reported as uncaught.
   *
   * @returns a function that ends it.
   */
  onEvent(listener: (event: AgentEvent) => void): () => void {
    return this.#listen({ hear: listener });
  }

  /**
   * The coming events of the session as an iteration, each {@link onEvent} would be called for.
   *
   * It listens from the moment a `for await` begins until it is left with `break`, or until the
   * session is closed through this handle. Events wait for a slow reader. Each iteration
   * listens for itself.
   *
   * # Errors
   * Where listening cannot begin the iteration throws the {@link AgentError}: `SESSION_NOT_FOUND`,
   * `IPC_DENIED`.
   *
   * @example
   * ```ts
   * for await (const event of session.events()) {
   *   if (event.type === 'turnComplete') break;
   * }
   * ```
   */
  events(): AsyncIterable<AgentEvent> {
    return { [Symbol.asyncIterator]: () => this.#iterate() };
  }

  /** What the session is doing, its newest event, its size and title. Fails with `SESSION_NOT_FOUND` once closed. */
  async info(): Promise<SessionInfo> {
    const info = await settle(commands.currentSession());
    if (info?.sessionId !== this.id) throw notOpen(this.id);
    return info;
  }

  /** Stored events of this session, in order, page by page. See {@link sessionHistory}. */
  history(options: HistoryOptions = {}): Promise<HistoryPage> {
    return sessionHistory(this.id, options);
  }

  /** All stored events of this session at once. See {@link fullHistory}. */
  fullHistory(options: Pick<HistoryOptions, 'from' | 'withImages'> = {}): Promise<HistoryPage> {
    return fullHistory(this.id, options);
  }

  /**
   * Makes the context smaller now, without waiting for the threshold. The signal cancels it.
   *
   * # Errors
   * `SESSION_BUSY` while a turn or another compaction runs, `SESSION_NOT_FOUND` once closed,
   * `MODEL_NOT_SUPPORTED`, `HOOK_ABORTED`, `REQUEST_CANCELLED`, `STORAGE_ERROR`,
   * `AGENT_SHUT_DOWN`. After an error the context is what it was.
   */
  async compact(options: SignalOptions = {}): Promise<CompactionOutcome> {
    const { signal } = options;
    if (signal?.aborted) throw cancelledAhead();
    const requestId = newRequestId();
    const cancel = (): void => void settle(commands.cancel(null, requestId)).catch(reportUncaught);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await settle(commands.compact(this.id, requestId));
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * Closes the session: a running turn is cancelled, everything is stored, memories are
   * extracted. Closing one that is closed already does nothing. Listeners of this handle
   * hear the end of the turn first.
   *
   * # Errors
   * `STORAGE_ERROR` saying what could not be stored: the session is closed all the same.
   * `IPC_DENIED`, `IPC_ERROR`: it is still open.
   */
  async close(): Promise<void> {
    let failure: unknown = null;
    const running = this.#listening && (await runningTurn(this.id));
    try {
      await settle(commands.closeSession(this.id));
    } catch (error) {
      if (AgentError.is(error) && error.source === 'ipc') throw error;
      const isClosed = AgentError.is(error, 'SESSION_NOT_FOUND') || AgentError.is(error, 'AGENT_SHUT_DOWN');
      if (!isClosed) failure = error;
    }
    const listening = this.#listening;
    this.#listening = null;
    await listening?.finish(running);
    this.#endIterations(null);
    if (failure !== null) throw failure;
  }

  /** Closes the session at the end of an `await using` block. */
  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  #begin(
    signal: AbortSignal | undefined,
    command: (requestId: string, onEvent: Channel<ChannelMessage>) => Accepting,
  ): Turn {
    const requestId = newRequestId();
    const attached = untilAttached(this.id);
    return new Turn({
      sessionId: this.id,
      requestId,
      turnId: null,
      signal,
      command: async (onEvent) => {
        if (attached) await attached;
        return settle(command(requestId, onEvent));
      },
    });
  }

  #listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    if (this.#listening === null) {
      const listening = new Listening(this.id, (event) => this.#tell(event));
      this.#listening = listening;
      listening.begin().catch((error: unknown) => {
        if (this.#listening !== listening) return;
        this.#listening = null;
        this.#endIterations(AgentError.from(error));
        // Iterations throw it; for listeners nobody waits who could be told.
        if (this.#listeners.size > 0) reportUncaught(error);
      });
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#listening?.close();
      this.#listening = null;
    };
  }

  #iterate(): AsyncIterator<AgentEvent, undefined> {
    const queue = new EventQueue();
    const stop = this.#listen({
      hear: (event) => queue.push(event),
      end: (error) => queue.end(error),
    });
    const reader = queue.read();
    return {
      next: () => reader.next(),
      return: async () => {
        stop();
        await reader.return?.();
        return { done: true, value: undefined };
      },
    };
  }

  #endIterations(error: AgentError | null): void {
    for (const listener of [...this.#listeners]) {
      if (!listener.end) continue;
      this.#listeners.delete(listener);
      listener.end(error);
    }
  }

  #tell(event: AgentEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener.hear(event);
      } catch (error) {
        reportUncaught(error);
      }
    }
  }
}

/** A command that starts a turn. */
type Accepting = ReturnType<typeof commands.sendMessage>;

/** The turn that a close cuts off. */
async function runningTurn(sessionId: string): Promise<string | null> {
  const info = await settle(commands.currentSession()).catch(() => null);
  return info?.sessionId === sessionId ? (info.turnId ?? null) : null;
}

function cancelledAhead(): AgentError {
  return new AgentError({
    code: 'REQUEST_CANCELLED',
    message: 'the compaction was cancelled before it began',
    retryable: true,
    source: 'agent',
  });
}
