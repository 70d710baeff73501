/**
 * The events a turn's state was made from, in order, so kept that a late one finds its place
 * and one more of ten thousand costs no copy of them all. Plain data, never changed.
 */

import type { AgentEvent } from './bindings.js';
import { firstSequenceOf } from './sequence.js';

/** Adding an event copies one piece. */
const PIECE = 128;

/** Events by number. */
export interface EventLog {
  readonly pieces: readonly (readonly AgentEvent[])[];
  /** Places between two events where numbers are missing. */
  readonly gaps: number;
}

/** A log without events. */
export const EMPTY_LOG: EventLog = { pieces: [], gaps: 0 };

/** The log with one more event, in its place; the same log if it has this very event. */
export function inserted(log: EventLog, event: AgentEvent): EventLog {
  const [index, at] = placeOf(log.pieces, event);
  const piece = log.pieces[index] ?? [];
  const before = piece[at - 1];
  if (before !== undefined && compare(before, event) === 0) return log;
  const after = piece[at] ?? log.pieces[index + 1]?.[0];
  const gaps = log.gaps - gap(before, after) + gap(before, event) + gap(event, after);
  return { pieces: withPiece(log.pieces, index, [...piece.slice(0, at), event, ...piece.slice(at)]), gaps };
}

/** All events in order. */
export function* eventsOf(log: EventLog): Generator<AgentEvent> {
  for (const piece of log.pieces) yield* piece;
}

/** Whether the log begins with the start of the turn and lacks no number. */
export function isComplete(log: EventLog): boolean {
  return log.gaps === 0 && log.pieces[0]?.[0]?.type === 'turnStarted';
}

/** Where an event belongs: the piece, and how many of its events come before. */
function placeOf(pieces: EventLog['pieces'], event: AgentEvent): [piece: number, at: number] {
  const isBefore = (other: AgentEvent | undefined): boolean => other !== undefined && compare(other, event) <= 0;
  const index = Math.max(0, countWhile(pieces.length, (piece) => isBefore(pieces[piece]?.[0])) - 1);
  const piece = pieces[index] ?? [];
  return [index, countWhile(piece.length, (at) => isBefore(piece[at]))];
}

/** How many of the first `length` numbers satisfy a condition that no later one satisfies once one does not. */
function countWhile(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function withPiece(pieces: EventLog['pieces'], index: number, piece: readonly AgentEvent[]): EventLog['pieces'] {
  // At the end a piece is filled before the next begins; in the middle it is cut in halves.
  const isLast = index >= pieces.length - 1;
  const cut = piece.length <= PIECE ? piece.length : isLast ? PIECE : PIECE >> 1;
  const parts = cut === piece.length ? [piece] : [piece.slice(0, cut), piece.slice(cut)];
  return [...pieces.slice(0, index), ...parts, ...pieces.slice(index + 1)];
}

function compare(a: AgentEvent, b: AgentEvent): number {
  return firstSequenceOf(a) - firstSequenceOf(b) || a.sequence - b.sequence;
}

function gap(before: AgentEvent | undefined, after: AgentEvent | undefined): number {
  return before !== undefined && after !== undefined && firstSequenceOf(after) > before.sequence + 1 ? 1 : 0;
}
