/**
 * The one place where failures become an {@link AgentError}.
 *
 * Three kinds arrive here: error objects of the agent, plain strings of the Tauri
 * framework, and anything else a broken page or mock may throw.
 */

import type { AgentError as AgentErrorData, ErrorCode, ErrorSource, JsonValue } from './bindings.js';

/**
 * Every code an {@link AgentError} can have: the agent's own, and three that only the way
 * between page and agent produces.
 *
 * - `IPC_DENIED`: no capability of the app allows the command in this window. Add
 *   `youyou-agent:default` to a capability that lists the window's label.
 * - `IPC_ERROR`: the framework refused or lost the call for another reason.
 * - `UNKNOWN`: something of unknown shape was thrown; the message holds an excerpt.
 */
export type AgentErrorCode = ErrorCode | 'IPC_DENIED' | 'IPC_ERROR' | 'UNKNOWN';

/** Fields of an {@link AgentError}, as plain data. */
export interface AgentErrorFields {
  /** What went wrong, for machines. */
  code: AgentErrorCode;
  /** What went wrong and what to do, for people. */
  message: string;
  /** Whether the same request may succeed when it is sent again. */
  retryable: boolean;
  /** The part of the system the error comes from. */
  source: ErrorSource;
  /** Milliseconds to wait before trying again, when the server named them. */
  retryAfterMs?: number | null | undefined;
  /** More facts, free in shape. */
  details?: JsonValue | undefined;
}

/**
 * The only error this package throws or rejects with.
 *
 * `message` is written for people and says what to do; `code` is for programs and stable.
 *
 * @example
 * ```ts
 * try {
 *   await session.send('Hello').result();
 * } catch (error) {
 *   if (AgentError.is(error, 'SESSION_BUSY')) showBusyNote();
 *   else throw error;
 * }
 * ```
 */
export class AgentError extends Error {
  override readonly name = 'AgentError';
  /** What went wrong, for machines. */
  readonly code: AgentErrorCode;
  /** Whether the same request may succeed when it is sent again. */
  readonly retryable: boolean;
  /** The part of the system the error comes from. */
  readonly source: ErrorSource;
  /** Milliseconds to wait before trying again, when the server named them. */
  readonly retryAfterMs?: number;
  /** More facts, free in shape. */
  readonly details?: JsonValue;

  /** Makes an error from its fields; `cause` is what was thrown originally, if anything. */
  constructor(fields: AgentErrorFields, cause?: unknown) {
    super(fields.message, cause === undefined ? undefined : { cause });
    this.code = fields.code;
    this.retryable = fields.retryable;
    this.source = fields.source;
    if (fields.retryAfterMs != null) this.retryAfterMs = fields.retryAfterMs;
    if (fields.details != null) this.details = fields.details;
  }

  /**
   * Whether a value is an {@link AgentError}, and of this `code` if one is named.
   *
   * It recognises errors of another copy of this package too, which `instanceof` would not.
   */
  static is(error: unknown, code?: AgentErrorCode): error is AgentError {
    const ours =
      error instanceof AgentError || (error instanceof Error && error.name === 'AgentError' && 'code' in error);
    return ours && (code === undefined || (error as AgentError).code === code);
  }

  /**
   * Turns whatever was thrown into an {@link AgentError}; one that is already is returned as it is.
   *
   * - an object with `code` and `message`: the agent's own error, field by field;
   * - a string: `IPC_DENIED` for a refusal by Tauri's access control, else `IPC_ERROR`;
   * - anything else: `UNKNOWN` with an excerpt of at most 200 characters.
   */
  static from(thrown: unknown): AgentError {
    if (AgentError.is(thrown)) return thrown;
    if (typeof thrown === 'string') {
      return new AgentError(ipcFields(DENIED.test(thrown) ? 'IPC_DENIED' : 'IPC_ERROR', thrown), thrown);
    }
    if (isAgentErrorData(thrown)) {
      return new AgentError(
        {
          code: thrown.code,
          message: thrown.message,
          retryable: thrown.retryable === true,
          source: thrown.source ?? 'agent',
          retryAfterMs: thrown.retryAfterMs,
          details: thrown.details ?? undefined,
        },
        thrown,
      );
    }
    if (!('__TAURI_INTERNALS__' in globalThis)) {
      return new AgentError(
        ipcFields(
          'IPC_ERROR',
          'this page does not run inside a Tauri app, so there is no agent to talk to; ' +
            'open it in the app, or call mockAgent() of "tauri-plugin-youyou-agent-api/testing" first',
        ),
        thrown,
      );
    }
    return new AgentError(ipcFields('UNKNOWN', `something unexpected was thrown: ${excerpt(thrown)}`), thrown);
  }
}

/** An argument that the client refuses by itself. */
export function invalidInput(message: string): AgentError {
  return new AgentError({ code: 'INVALID_INPUT', message, retryable: false, source: 'ipc' });
}

/** Refusals of Tauri's access control, in release builds (short) and debug builds (long). */
const DENIED = /\bnot allowed\b|\bexplicitly denied\b/i;

const EXCERPT_LENGTH = 200;

function ipcFields(code: AgentErrorCode, message: string): AgentErrorFields {
  return { code, message, retryable: false, source: 'ipc' };
}

function isAgentErrorData(value: unknown): value is AgentErrorData {
  if (typeof value !== 'object' || value === null || value instanceof Error) return false;
  const { code, message } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof message === 'string';
}

function excerpt(value: unknown): string {
  const text = value instanceof Error ? String(value) : (toJson(value) ?? String(value));
  return text.length > EXCERPT_LENGTH ? `${text.slice(0, EXCERPT_LENGTH)}…` : text;
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Awaits a generated command and gives its data, or throws an {@link AgentError}.
 *
 * The generated functions return `{ status: 'error' }` for everything that is no `Error`
 * and rethrow what is: both end here, so that neither reaches the user.
 */
export async function settle<T>(
  call: Promise<{ status: 'ok'; data: T } | { status: 'error'; error: unknown }>,
): Promise<T> {
  let answer;
  try {
    answer = await call;
  } catch (thrown) {
    throw AgentError.from(thrown);
  }
  if (answer.status === 'ok') return answer.data;
  throw AgentError.from(answer.error);
}

/**
 * Reports a failure that no caller is waiting for (a listener that threw, an abort signal
 * whose cancel was refused) the way the platform reports uncaught errors, without ending anything.
 */
export function reportUncaught(error: unknown): void {
  const { reportError } = globalThis as { reportError?: (error: unknown) => void };
  if (reportError) reportError(error);
  else console.error(error);
}
