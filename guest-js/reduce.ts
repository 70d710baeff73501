/**
 * From events to what a screen shows: one pure function.
 */

import type { AgentError as AgentErrorData, AgentEvent, Usage } from './bindings.js';
import { applyToParts, type TurnPart } from './parts.js';
import { firstSequenceOf, isTerminal, Sequencer } from './sequence.js';

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
