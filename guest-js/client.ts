/**
 * The agent's functions and the session: what a page calls.
 *
 * Every call goes through the generated `commands`, so that arguments and answers are
 * checked against the Rust side when this package is compiled, and through `settle`, so
 * that every failure is an {@link AgentError}.
 */

import {
  commands,
  type AgentEvent,
  type CompactOutcome,
  type ContentBlock,
  type ModelEntry,
  type ReasoningEffort,
  type SendOptions as SendOptionsData,
  type SessionConfig,
  type SessionEvent,
  type SessionInfo,
  type SessionSummary,
  type SkillInfo,
  type ToolInfo,
} from './bindings.js';
import { AgentError, reportUncaught, settle } from './error.js';
import { Feed } from './feed.js';
import { Turn } from './turn.js';
import { isTerminal } from './sequence.js';

/** How a session is created. Everything is optional. */
export interface CreateSessionOptions {
  /** The model; absent: the agent's default model. See {@link listModels}. */
  modelId?: string | undefined;
  /** The title; absent: the user's first words. */
  title?: string | undefined;
  /** System instructions instead of the agent's, in order. */
  systemInstructions?: string[] | undefined;
  /** Personality instead of the agent's. */
  personality?: string | undefined;
  /** Environment text instead of the agent's; not stored. */
  environment?: string | undefined;
  /** Namespace of the memories instead of the agent's. */
  memoryNamespace?: string | undefined;
  /** Closes the open session first instead of failing with `SESSION_BUSY`. */
  replace?: boolean | undefined;
}

/** How a stored session is opened again. Everything is optional. */
export interface ResumeSessionOptions {
  /** A model instead of the stored one. */
  modelId?: string | undefined;
  /** Environment text instead of the agent's. */
  environment?: string | undefined;
  /** Closes the open session first instead of failing with `SESSION_BUSY`. */
  replace?: boolean | undefined;
}

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

/** A page of a list. */
export interface Page<T> {
  /** The rows. */
  items: T[];
  /** What to give as `cursor` for the next page; absent on the last. */
  nextCursor?: string;
}

/** A page of a session's stored events. */
export interface HistoryPage {
  /** In order of index. */
  events: SessionEvent[];
  /** What to give as `cursor` for the next page; absent on the last. */
  nextCursor?: number;
}

/** Which part of a session's history is wanted. */
export interface HistoryOptions {
  /** `nextCursor` of the page before; absent: from the beginning. */
  cursor?: number | undefined;
  /** At most so many events. */
  limit?: number | undefined;
  /** Whether images come with their bytes. Absent: without. */
  withImages?: boolean | undefined;
}

/**
 * Creates a session and opens it. One session is open at a time.
 *
 * # Errors
 * `SESSION_BUSY` while another is open (unless `replace`), `MODEL_NOT_SUPPORTED`, `HOOK_ABORTED`.
 */
export async function createSession(options: CreateSessionOptions = {}): Promise<Session> {
  const config: SessionConfig = defined(options);
  return new Session(await settle(commands.createSession(config, newRequestId())));
}

/**
 * Opens a stored session again.
 *
 * # Errors
 * `SESSION_NOT_FOUND`, `SESSION_BUSY` while another is open (unless `replace`),
 * `MODEL_NOT_SUPPORTED` if its model is gone and no other is named.
 */
export async function resumeSession(sessionId: string, options: ResumeSessionOptions = {}): Promise<Session> {
  return new Session(await settle(commands.resumeSession(sessionId, defined(options))));
}

/** The open session, or `null`. After a reload of the page, this is how to find it again. */
export async function currentSession(): Promise<Session | null> {
  const info = await settle(commands.currentSession());
  return info && new Session(info);
}

/** Stored sessions, newest first, page by page. Empty without a session storage. */
export async function listSessions(
  options: { limit?: number | undefined; cursor?: string | undefined } = {},
): Promise<Page<SessionSummary>> {
  const page = await settle(commands.listSessions(options.cursor ?? null, options.limit ?? null));
  return { items: page.sessions, ...(page.nextCursor != null ? { nextCursor: page.nextCursor } : {}) };
}

/**
 * Stored sessions that fit: the one with that id, else those with that title, else those
 * whose id starts with it, else those whose title contains it. A blank query fits none.
 */
export function findSessions(query: string): Promise<SessionSummary[]> {
  return settle(commands.findSessions(query));
}

/** Changes a session's title. Fails with `SESSION_NOT_FOUND`. */
export async function renameSession(sessionId: string, title: string): Promise<void> {
  await settle(commands.renameSession(sessionId, title));
}

/**
 * Deletes a stored session for good.
 *
 * # Errors
 * `SESSION_BUSY` for the open session, `SESSION_NOT_FOUND`, and `IPC_DENIED` unless the app
 * allows `youyou-agent:allow-delete-session`, which is not part of the default permission.
 */
export async function deleteSession(sessionId: string): Promise<void> {
  await settle(commands.deleteSession(sessionId));
}

/** Stored events of any session, in order, page by page. Fails with `SESSION_NOT_FOUND`. */
export async function sessionHistory(sessionId: string, options: HistoryOptions = {}): Promise<HistoryPage> {
  const { cursor = null, limit = null, withImages = null } = options;
  const page = await settle(commands.sessionHistory(sessionId, cursor, limit, withImages));
  return { events: page.events, ...(page.nextCursor != null ? { nextCursor: page.nextCursor } : {}) };
}

/** The models that can be used right now; they may change while the app runs. */
export function listModels(): Promise<ModelEntry[]> {
  return settle(commands.listModels());
}

/** The tools the model may call. */
export function listTools(): Promise<ToolInfo[]> {
  return settle(commands.listTools());
}

/** The skills a user can call by writing `/name` at the start of a message. */
export function listSkills(): Promise<SkillInfo[]> {
  return settle(commands.listSkills());
}

/** Older webviews lack the symbol; then `await using` does not exist there either. */
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** Silence between turns, in milliseconds, after which the agent is asked whether one began unseen. */
const IDLE_CHECK_MS = 10_000;
const SILENCE_MS = 2_000;

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
   * `SESSION_BUSY` while a turn runs, `COMPACT_ERROR`, `REQUEST_CANCELLED`.
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

/** A copy without the keys whose value is `undefined`, which would not survive the way to Rust. */
function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** An id for a request: unique, also on pages where `crypto.randomUUID` does not exist. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
