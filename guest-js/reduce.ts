/**
 * From events to what a screen shows: one pure function.
 */

import type { AgentError as AgentErrorData, AgentEvent, StopReason, Usage } from './bindings.js';
import { EMPTY_LOG, eventsOf, inserted, isComplete, type EventLog } from './event-log.js';
import { emptyList, listOf, partsOf, type PartList } from './part-list.js';
import { applyToParts, type TurnPart } from './parts.js';
import { firstSequenceOf, isOfTurn, isTerminal, Sequencer } from './sequence.js';

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
  /** Why the model stopped in the last response, once the turn has ended and if the provider said so. */
  readonly stopReason?: StopReason;
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
   * The events the state was made from, so that a late one finds its place. Empty once the turn
   * has ended and nothing is missing. Not meant to be read.
   */
  readonly log: EventLog;
}

/**
 * Takes one event into the state of its turn. Pure: neither argument is changed.
 *
 * - Start with `undefined`.
 * - Idempotent: an event that is known by (turn, number) changes nothing, and the same
 *   object is returned, so that a UI library sees that nothing changed.
 * - Order does not matter: an event that arrives late is put where its number belongs.
 *   Deltas that overlap because they were joined differently show every word once.
 * - An event of a newer turn starts a new state; one of an older turn is ignored, and so is
 *   what belongs to none (`skipped`, an empty turn id).
 * - The cost of an event does not grow with the turn, except for the first look at `parts`.
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
  // What happens between turns is no part of any.
  if (!isOfTurn(event)) return state ?? nothing(event);
  if (state === undefined) return start(event);
  if (event.turnId !== state.turnId) return event.sequence > state.lastSequence ? start(event) : state;
  if (state.status !== 'running' && state.log.pieces.length === 0) return state;
  const log = inserted(state.log, event);
  if (log === state.log) return state;
  const { head, parts } = coreOf(state);
  const isNext = firstSequenceOf(event) > head.lastSequence;
  const isFirst = log.pieces[0]?.[0] === event;
  return stateOf(
    {
      ...head,
      ...(isTerminal(event) ? endOf(event) : {}),
      ...(isFirst ? { startedAt: event.timestamp } : {}),
      lastSequence: Math.max(head.lastSequence, event.sequence),
      log,
    },
    // A late event is put among the others when the parts are looked at next.
    isNext && parts !== null ? applyToParts(parts, event) : null,
  );
}

/** All text the turn has shown so far, without reasoning, over all model calls. */
export function textOf(state: TurnState): string {
  return state.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** All reasoning the turn has shown so far, over all model calls. */
export function reasoningOf(state: TurnState): string {
  return state.parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
}

/** Everything of a state but its parts. */
type Head = Omit<TurnState, 'parts'>;

/** What a state is made of. */
interface Core {
  head: Head;
  /** `null` until the log is gone through. */
  parts: PartList | null;
}

/** The cores of states that were made here. A copy of a state has none, and its parts are enough. */
const cores = new WeakMap<TurnState, Core>();

function coreOf(state: TurnState): Core {
  const core = cores.get(state);
  if (core !== undefined) return core;
  const { parts, ...head } = state;
  return { head, parts: listOf(parts) };
}

function stateOf(head: Head, parts: PartList | null): TurnState {
  const core: Core = { head, parts };
  if (head.status !== 'running' && isComplete(head.log)) {
    const replayed = replay(head.log);
    // Where deltas overlap, words may be missing though no number is.
    if (replayed.isWhole) {
      core.parts ??= replayed.parts;
      core.head = { ...head, log: EMPTY_LOG };
    }
  }
  let flat: readonly TurnPart[] | null = null;
  const state: TurnState = {
    ...core.head,
    get parts() {
      core.parts ??= replay(core.head.log).parts;
      return (flat ??= partsOf(core.parts));
    },
  };
  cores.set(state, core);
  return state;
}

function start(event: AgentEvent): TurnState {
  const head: Head = {
    sessionId: event.sessionId,
    turnId: event.turnId,
    status: 'running',
    startedAt: event.timestamp,
    lastSequence: event.sequence,
    log: inserted(EMPTY_LOG, event),
    ...(isTerminal(event) ? endOf(event) : {}),
  };
  return stateOf(head, applyToParts(emptyList(), event));
}

/** A state with nothing to show: its turn's events are gone, or there was no turn. */
function nothing({ sessionId, turnId, timestamp, sequence }: AgentEvent): TurnState {
  return stateOf(
    { sessionId, turnId, status: 'completed', startedAt: timestamp, lastSequence: sequence, log: EMPTY_LOG },
    emptyList(),
  );
}

/** The parts that a log makes, and whether every number went into them. */
function replay(log: EventLog): { parts: PartList; isWhole: boolean } {
  const sequencer = new Sequencer();
  let parts = emptyList();
  let isWhole = true;
  for (const event of eventsOf(log)) {
    if (sequencer.last !== null && firstSequenceOf(event) > sequencer.last + 1) isWhole = false;
    const fresh = sequencer.take(event);
    if (fresh !== null) parts = applyToParts(parts, fresh);
  }
  return { parts, isWhole };
}

/** What the last event of a turn says of it. */
function endOf(event: AgentEvent): Partial<Head> {
  if (event.type === 'turnCancelled') return { status: 'cancelled', usage: event.usage, endedAt: event.timestamp };
  if (event.type !== 'turnComplete') return {};
  return {
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
