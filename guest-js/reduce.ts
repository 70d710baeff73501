/**
 * From events to what a screen shows: one pure function.
 */

import type { AgentError as AgentErrorData, AgentEvent, StopReason, Usage } from './bindings.js';
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
  /** Why the model stopped in the last response, once the turn has ended and if its provider said so. */
  readonly stopReason?: StopReason;
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
   * The events the state was made from, by number and in small pieces, so that a late one
   * finds its place and adding one costs little. Empty once the turn has ended and nothing
   * is missing. Not meant to be read.
   */
  readonly log: EventLog;
}

/** Events by number, in pieces of at most {@link PIECE}. */
type EventLog = readonly (readonly AgentEvent[])[];

/** Adding an event copies one piece, not the whole log. */
const PIECE = 128;

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
  // What happens between turns is no part of any.
  if (event.turnId === '' || event.type === 'skipped') return state;
  if (event.turnId !== state.turnId) return event.sequence > state.lastSequence ? start(event) : state;
  if (state.status !== 'running' && state.log.length === 0) return state;
  if (firstSequenceOf(event) > state.lastSequence) {
    return sealed(apply({ ...state, log: appended(state.log, event) }, event));
  }
  if (isKnown(state.log, event)) return state;
  return sealed(replay([...state.log.flat(), event].sort(byNumber)));
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
    log: [[event]],
  };
}

function appended(log: EventLog, event: AgentEvent): EventLog {
  const last = log.at(-1);
  return last !== undefined && last.length < PIECE
    ? [...log.slice(0, -1), [...last, event]]
    : [...log, [event]];
}

function byNumber(a: AgentEvent, b: AgentEvent): number {
  return firstSequenceOf(a) - firstSequenceOf(b) || a.sequence - b.sequence;
}

/** Whether the log has this very event. */
function isKnown(log: EventLog, event: AgentEvent): boolean {
  const piece = log.findLast(([first]) => first !== undefined && byNumber(first, event) <= 0);
  return piece !== undefined && piece.some((other) => byNumber(other, event) === 0);
}

function replay(events: readonly AgentEvent[]): TurnState {
  const sequencer = new Sequencer();
  let state: TurnState | undefined;
  for (const event of events) {
    const fresh = sequencer.take(event);
    if (fresh === null) continue;
    state = state === undefined ? start(fresh) : apply(state, fresh);
  }
  // There is always at least one event, and the first is always fresh.
  return { ...(state as TurnState), log: pieces(events) };
}

function pieces(events: readonly AgentEvent[]): EventLog {
  const log: AgentEvent[][] = [];
  for (let at = 0; at < events.length; at += PIECE) log.push(events.slice(at, at + PIECE));
  return log;
}

/** Forgets the log of an ended turn when no number is missing in it. */
function sealed(state: TurnState): TurnState {
  if (state.status === 'running' || state.log[0]?.[0]?.type !== 'turnStarted') return state;
  const sequencer = new Sequencer();
  for (const event of state.log.flat()) {
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
    ...(event.stopReason ? { stopReason: event.stopReason } : {}),
    assistantOutput: event.assistantOutput,
    usage: event.usage,
    sessionUsage: event.sessionUsage,
    contextTokens: event.contextTokens,
    contextWindow: event.contextWindow,
    endedAt: event.timestamp,
  };
}
