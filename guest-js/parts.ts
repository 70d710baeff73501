/**
 * The pieces of a turn that a screen shows, and what each event does to them.
 */

import type { AgentError as AgentErrorData, AgentEvent, CompactionMethod, ErrorCode, ErrorSource, JsonValue } from './bindings.js';
import { lastOf, pushed, withCall, withLast, type PartList } from './part-list.js';
import { firstSequenceOf, isDelta } from './sequence.js';

/** A stretch of the answer's text. */
export interface TextPart {
  type: 'text';
  /** Number of the part's first event: a stable key for lists. */
  key: number;
  /** Index of the model call in the turn, from 0. */
  step: number;
  /** The text so far. */
  text: string;
}

/** A stretch of the model's reasoning. */
export interface ReasoningPart {
  type: 'reasoning';
  /** Number of the part's first event: a stable key for lists. */
  key: number;
  /** Index of the model call in the turn, from 0. */
  step: number;
  /** The text so far. */
  text: string;
}

/** A tool call, from its start to its end. */
export interface ToolPart {
  type: 'tool';
  /** Number of the part's first event: a stable key for lists. */
  key: number;
  /** Index of the model call in the turn, from 0. */
  step: number;
  /** The call, unique in its session. */
  callId: string;
  /** The tool. */
  toolName: string;
  /** The arguments that are really used. */
  arguments: JsonValue;
  /** `running` until the result is there, then `done` or `error`. */
  state: 'running' | 'done' | 'error';
  /** What the running tool said last. */
  progress?: string;
  /** What the model sees of the result. */
  output?: string;
  /** What the tool adds for the caller. */
  metadata?: JsonValue;
  /** How long it ran, in milliseconds. */
  durationMs?: number;
  /** Why it failed. */
  error?: ErrorCode;
}

/** Older messages were replaced by less; sizes are estimated tokens. */
export interface CompactionPart {
  type: 'compaction';
  /** Number of the part's event: a stable key for lists. */
  key: number;
  /** How. */
  method: CompactionMethod;
  /** Estimated size before, in tokens. */
  tokensBefore: number;
  /** Estimated size after, in tokens. */
  tokensAfter: number;
  /** How many messages the model no longer sees. */
  messagesRemoved: number;
}

/** The model call failed and is tried again. */
export interface RetryPart {
  type: 'retry';
  /** Number of the part's event: a stable key for lists. */
  key: number;
  /** Number of the coming attempt, from 1. */
  attempt: number;
  /** Milliseconds until then. */
  delayMs: number;
  /** Why the last attempt failed. */
  error: AgentErrorData;
}

/** Something went wrong that does not stop the turn. */
export interface WarningPart {
  type: 'warning';
  /** Number of the part's event: a stable key for lists. */
  key: number;
  /** What. */
  message: string;
  /** Where. */
  source: ErrorSource;
}

/** Something failed; alone it does not end the turn. */
export interface ErrorPart {
  type: 'error';
  /** Number of the part's event: a stable key for lists. */
  key: number;
  /** What. */
  error: AgentErrorData;
}

/** One piece of a turn, in the order of events. */
export type TurnPart =
  | TextPart
  | ReasoningPart
  | ToolPart
  | CompactionPart
  | RetryPart
  | WarningPart
  | ErrorPart;

/** The parts after one more event; the same list if it changes none. */
export function applyToParts(parts: PartList, event: AgentEvent): PartList {
  const key = firstSequenceOf(event);
  if (isDelta(event)) {
    if (event.delta === '') return parts;
    const type = event.type === 'textDelta' ? 'text' : 'reasoning';
    const last = lastOf(parts);
    return last?.type === type && last.step === event.step
      ? withLast(parts, { ...last, text: last.text + event.delta })
      : pushed(parts, { type, key, step: event.step, text: event.delta });
  }
  switch (event.type) {
    case 'toolCallStart': {
      const { step, callId, toolName } = event;
      return pushed(parts, { type: 'tool', key, step, callId, toolName, arguments: event.arguments, state: 'running' });
    }
    case 'toolProgress':
      return withCall(parts, event.callId, (tool) => ({ ...tool, progress: event.message }));
    case 'toolCallEnd':
      return withCall(parts, event.callId, (tool) => ({
        ...tool,
        state: event.success ? 'done' : 'error',
        output: event.output,
        durationMs: event.durationMs,
        ...(event.metadata != null ? { metadata: event.metadata } : {}),
        ...(event.error != null ? { error: event.error } : {}),
      }));
    case 'contextCompacted': {
      const { method, tokensBefore, tokensAfter, messagesRemoved } = event;
      return pushed(parts, { type: 'compaction', key, method, tokensBefore, tokensAfter, messagesRemoved });
    }
    case 'providerRetry':
      return pushed(parts, { type: 'retry', key, attempt: event.attempt, delayMs: event.delayMs, error: event.error });
    case 'warning':
      return pushed(parts, { type: 'warning', key, message: event.message, source: event.source });
    case 'error':
      return pushed(parts, { type: 'error', key, error: event.error });
    default:
      // `turnStarted`, and kinds that a newer agent may send.
      return parts;
  }
}
