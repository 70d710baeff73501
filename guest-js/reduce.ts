/**
 * From events to what a screen shows: one pure function.
 */

import type {
  AgentError as AgentErrorData,
  AgentEvent,
  CompactMethod,
  ErrorCode,
  ErrorSource,
  JsonValue,
  Usage,
} from './bindings.js';
import { firstSequenceOf, isDelta, isTerminal, Sequencer } from './sequence.js';

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
  method: CompactMethod;
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

/** What a screen needs to show one turn. Plain data: it can be stored, cloned and compared. */
export interface TurnState {
  /** The session. */
  readonly sessionId: string;
  /** The turn. */
  readonly turnId: string;
  /** `running` until the last event is there. */
  readonly status: 'running' | 'completed' | 'failed' | 'cancelled';
  /** Text, reasoning, tool calls and notes, in the order of events. */
  readonly parts: readonly TurnPart[];
  /** Why the turn failed. */
  readonly error?: AgentErrorData;
  /** Text of the last response, as the agent reports it when the turn completes or fails. */
  readonly assistantOutput?: string;
  /** What the turn cost, once it has ended. */
  readonly usage?: Usage;
  /** What the session has cost, once the turn has ended. */
  readonly sessionUsage?: Usage;
  /** Estimated size of the context in tokens, once the turn has ended. */
  readonly contextTokens?: number;
  /** The model's window in tokens, once the turn has ended. */
  readonly contextWindow?: number;
  /** Time of the first event known, in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** Time of the last event, once the turn has ended. */
  readonly endedAt?: number;
  /** Number of the newest event taken in. */
  readonly lastSequence: number;
  /**
   * The events the state was made from, by number, so that a late one finds its place.
   * Empty once the turn has ended and nothing is missing.
   */
  readonly log: readonly AgentEvent[];
}

/**
 * Takes one event into the state of its turn. Pure: neither argument is changed.
 *
 * - Start with `undefined`.
 * - Idempotent: an event that is known by (turn, number) changes nothing, and the same
 *   object is returned, so that a UI library sees that nothing changed.
 * - Order does not matter: an event that arrives late is put where its number belongs.
 *   Deltas that overlap because they were joined differently show every word once.
 * - An event of a newer turn starts a new state; one of an older turn is ignored.
 *
 * @example
 * ```ts
 * let state: TurnState | undefined;
 * turn.on('event', (event) => {
 *   state = reduceTurn(state, event);
 *   render(state.parts);
 * });
 * ```
 */
export function reduceTurn(state: TurnState | undefined, event: AgentEvent): TurnState {
  if (state === undefined) return start(event);
  if (event.turnId !== state.turnId) return event.sequence > state.lastSequence ? start(event) : state;
  if (state.status !== 'running' && state.log.length === 0) return state;
  if (firstSequenceOf(event) > state.lastSequence) {
    return sealed(apply({ ...state, log: [...state.log, event] }, event));
  }
  const place = placeOf(state.log, event);
  if (place === null) return state;
  return sealed(replay([...state.log.slice(0, place), event, ...state.log.slice(place)]));
}

/** All text the turn has shown so far, without reasoning, over all model calls. */
export function textOf(state: TurnState): string {
  return state.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** All reasoning the turn has shown so far, over all model calls. */
export function reasoningOf(state: TurnState): string {
  return state.parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
}

function start(event: AgentEvent): TurnState {
  return apply(empty(event), event);
}

function empty(event: AgentEvent): TurnState {
  return {
    sessionId: event.sessionId,
    turnId: event.turnId,
    status: 'running',
    parts: [],
    startedAt: event.timestamp,
    lastSequence: event.sequence,
    log: [event],
  };
}

/** Index at which a late event belongs, or `null` if the log has it. */
function placeOf(log: readonly AgentEvent[], event: AgentEvent): number | null {
  const first = firstSequenceOf(event);
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = log[middle];
    if (other === undefined) break;
    const order = firstSequenceOf(other) - first || other.sequence - event.sequence;
    if (order === 0) return null;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function replay(log: readonly AgentEvent[]): TurnState {
  const sequencer = new Sequencer();
  let state: TurnState | undefined;
  for (const event of log) {
    const fresh = sequencer.take(event);
    if (fresh === null) continue;
    state = state === undefined ? start(fresh) : apply(state, fresh);
  }
  // A log always holds at least one event, and the first is always fresh.
  return { ...(state as TurnState), log };
}

/** Forgets the log of an ended turn when no number is missing in it. */
function sealed(state: TurnState): TurnState {
  if (state.status === 'running' || state.log[0]?.type !== 'turnStarted') return state;
  const sequencer = new Sequencer();
  for (const event of state.log) {
    if (sequencer.last !== null && firstSequenceOf(event) > sequencer.last + 1) return state;
    sequencer.take(event);
  }
  return { ...state, log: [] };
}

function apply(state: TurnState, event: AgentEvent): TurnState {
  const next = { ...state, lastSequence: Math.max(state.lastSequence, event.sequence) };
  if (isTerminal(event)) return end(next, event);
  const parts = applyToParts(state.parts, event);
  return parts === state.parts ? next : { ...next, parts };
}

function end(state: TurnState, event: AgentEvent): TurnState {
  if (event.type === 'turnCancelled') {
    return { ...state, status: 'cancelled', usage: event.usage, endedAt: event.timestamp };
  }
  if (event.type !== 'turnComplete') return state;
  return {
    ...state,
    status: event.status,
    ...(event.error ? { error: event.error } : {}),
    assistantOutput: event.assistantOutput,
    usage: event.usage,
    sessionUsage: event.sessionUsage,
    contextTokens: event.contextTokens,
    contextWindow: event.contextWindow,
    endedAt: event.timestamp,
  };
}

function applyToParts(parts: readonly TurnPart[], event: AgentEvent): readonly TurnPart[] {
  const key = firstSequenceOf(event);
  if (isDelta(event)) {
    if (event.delta === '') return parts;
    const type = event.type === 'textDelta' ? 'text' : 'reasoning';
    const last = parts.at(-1);
    return last?.type === type && last.step === event.step
      ? [...parts.slice(0, -1), { ...last, text: last.text + event.delta }]
      : [...parts, { type, key, step: event.step, text: event.delta }];
  }
  switch (event.type) {
    case 'toolCallStart': {
      const { step, callId, toolName } = event;
      return [...parts, { type: 'tool', key, step, callId, toolName, arguments: event.arguments, state: 'running' }];
    }
    case 'toolProgress':
      return changeTool(parts, event.callId, (tool) => ({ ...tool, progress: event.message }));
    case 'toolCallEnd':
      return changeTool(parts, event.callId, (tool) => ({
        ...tool,
        state: event.success ? 'done' : 'error',
        output: event.output,
        durationMs: event.durationMs,
        ...(event.metadata != null ? { metadata: event.metadata } : {}),
        ...(event.error != null ? { error: event.error } : {}),
      }));
    case 'contextCompacted': {
      const { method, tokensBefore, tokensAfter, messagesRemoved } = event;
      return [...parts, { type: 'compaction', key, method, tokensBefore, tokensAfter, messagesRemoved }];
    }
    case 'providerRetry':
      return [...parts, { type: 'retry', key, attempt: event.attempt, delayMs: event.delayMs, error: event.error }];
    case 'warning':
      return [...parts, { type: 'warning', key, message: event.message, source: event.source }];
    case 'error':
      return [...parts, { type: 'error', key, error: event.error }];
    default:
      // `turnStarted`, and kinds that a newer agent may send.
      return parts;
  }
}

function changeTool(
  parts: readonly TurnPart[],
  callId: string,
  change: (tool: ToolPart) => ToolPart,
): readonly TurnPart[] {
  return parts.map((part) => (part.type === 'tool' && part.callId === callId ? change(part) : part));
}
