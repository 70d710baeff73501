/**
 * The parts of a turn, so kept that one more of ten thousand costs no copy of them all.
 *
 * Lists are never changed: each change gives a new list that shares what is the same.
 */

import type { ToolPart, TurnPart } from './parts.js';

/** Adding or changing a part copies one chunk. */
const CHUNK = 128;

/** A list of parts. */
export interface PartList {
  readonly chunks: readonly (readonly TurnPart[])[];
  readonly length: number;
  /**
   * Where the tool calls are. All lists that came from each other share it, so what it says is
   * true of some of them, and one that it does not name is in none.
   */
  readonly calls: Map<string, number>;
}

/** A list without parts. */
export function emptyList(): PartList {
  return { chunks: [], length: 0, calls: new Map() };
}

/** The list of parts that are there already. */
export function listOf(parts: readonly TurnPart[]): PartList {
  const chunks: (readonly TurnPart[])[] = [];
  for (let at = 0; at < parts.length; at += CHUNK) chunks.push(parts.slice(at, at + CHUNK));
  const calls = new Map<string, number>();
  parts.forEach((part, at) => {
    if (part.type === 'tool') calls.set(part.callId, at);
  });
  return { chunks, length: parts.length, calls };
}

/** All parts in one array. */
export function partsOf(list: PartList): readonly TurnPart[] {
  return list.chunks.flat();
}

/** The newest part. */
export function lastOf(list: PartList): TurnPart | undefined {
  return list.chunks.at(-1)?.at(-1);
}

/** The list with one more part. */
export function pushed(list: PartList, part: TurnPart): PartList {
  if (part.type === 'tool') list.calls.set(part.callId, list.length);
  const last = list.chunks.at(-1);
  const chunks =
    last !== undefined && last.length < CHUNK
      ? [...list.chunks.slice(0, -1), [...last, part]]
      : [...list.chunks, [part]];
  return { chunks, length: list.length + 1, calls: list.calls };
}

/** The list with another newest part. */
export function withLast(list: PartList, part: TurnPart): PartList {
  return replaced(list, list.length - 1, part);
}

/** The list with a tool call changed; the same list if the call is not in it. */
export function withCall(list: PartList, callId: string, change: (call: ToolPart) => ToolPart): PartList {
  const at = indexOf(list, callId);
  const part = at === null ? undefined : partAt(list, at);
  return at === null || part?.type !== 'tool' ? list : replaced(list, at, change(part));
}

function indexOf(list: PartList, callId: string): number | null {
  const at = list.calls.get(callId);
  if (at === undefined) return null;
  const isHere = (part: TurnPart | undefined): boolean => part?.type === 'tool' && part.callId === callId;
  if (isHere(partAt(list, at))) return at;
  // Another list that shares the index has the call at another place.
  const found = partsOf(list).findIndex(isHere);
  return found < 0 ? null : found;
}

function partAt(list: PartList, at: number): TurnPart | undefined {
  return list.chunks[Math.floor(at / CHUNK)]?.[at % CHUNK];
}

function replaced(list: PartList, at: number, part: TurnPart): PartList {
  const index = Math.floor(at / CHUNK);
  const chunk = list.chunks[index];
  if (chunk === undefined) return list;
  const changed = chunk.slice();
  changed[at % CHUNK] = part;
  const chunks = list.chunks.slice();
  chunks[index] = changed;
  return { ...list, chunks };
}
