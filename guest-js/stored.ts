/**
 * Stored sessions, open or not: lists, history, titles, deleting.
 */

import { commands, type SessionEvent, type SessionSummary } from './bindings.js';
import { invalidInput, settle } from './error.js';

/** A page of a list. */
export interface Page<T> {
  /** The rows. */
  items: T[];
  /** Pass it as `cursor` for the next page; absent on the last. It means something to the agent only. */
  nextCursor?: string;
}

/** Which page of a list is wanted. */
export interface ListOptions {
  /** `nextCursor` of the page before; absent: the first page. */
  cursor?: string | undefined;
  /** At most so many rows, 1 to 500; absent: 50. */
  limit?: number | undefined;
}

/** A page of a session's stored events, in order of index. */
export interface HistoryPage extends Page<SessionEvent> {
  /** How many stored records could not be read and were left out. */
  unreadable: number;
}

/** Which part of a session's history is wanted. */
export interface HistoryOptions extends ListOptions {
  /** Index of the event to begin with, where no `cursor` is given; absent: the first. */
  from?: number | undefined;
  /** Whether images come with their bytes. Absent: without. */
  withImages?: boolean | undefined;
}

/** Rows that {@link fullHistory} asks for at a time: as many as a page may have. */
const LARGEST_PAGE = 500;

/** Stored sessions, newest first, page by page. Empty without a session storage. Fails with `STORAGE_ERROR`. */
export async function listSessions(options: ListOptions = {}): Promise<Page<SessionSummary>> {
  const page = await settle(commands.listSessions(options.cursor ?? null, options.limit ?? null));
  return { items: page.sessions, ...(page.nextCursor != null ? { nextCursor: page.nextCursor } : {}) };
}

/**
 * Stored sessions that fit: the one with that id, else those with that title, else those
 * whose id starts with it, else those whose title contains it. A blank query fits none.
 * Fails with `STORAGE_ERROR`.
 */
export function findSessions(query: string): Promise<SessionSummary[]> {
  return settle(commands.findSessions(query));
}

/**
 * Changes a session's title.
 *
 * # Errors
 * `INVALID_INPUT` for a blank title, `SESSION_NOT_FOUND`, `STORAGE_ERROR`.
 */
export async function renameSession(sessionId: string, title: string): Promise<void> {
  await settle(commands.renameSession(sessionId, title));
}

/**
 * Deletes a stored session for good.
 *
 * # Errors
 * `SESSION_BUSY` for a session that is open or being resumed, `SESSION_NOT_FOUND`, `STORAGE_ERROR`, and `IPC_DENIED`
 * unless the app allows `youyou-agent:allow-delete-session`, which is not part of the default permission.
 */
export async function deleteSession(sessionId: string): Promise<void> {
  await settle(commands.deleteSession(sessionId));
}

/**
 * Stored events of any session, in order, page by page. A page ends early after 4 MiB.
 *
 * # Errors
 * `SESSION_NOT_FOUND`, `STORAGE_ERROR`, `INVALID_INPUT` for a cursor that comes from elsewhere.
 */
export async function sessionHistory(sessionId: string, options: HistoryOptions = {}): Promise<HistoryPage> {
  const { limit = null, withImages = null } = options;
  const page = await settle(commands.sessionHistory(sessionId, startOf(options), limit, withImages));
  return {
    items: page.events,
    unreadable: page.unreadable,
    ...(page.nextCursor != null ? { nextCursor: String(page.nextCursor) } : {}),
  };
}

/**
 * All stored events of a session at once: every page, one after another. Fails like {@link sessionHistory}.
 *
 * A long session with images takes much memory; what is shown little by little is better read by pages.
 */
export async function fullHistory(
  sessionId: string,
  options: Pick<HistoryOptions, 'from' | 'withImages'> = {},
): Promise<HistoryPage> {
  const { from, withImages } = options;
  const all: HistoryPage = { items: [], unreadable: 0 };
  let cursor: string | undefined;
  do {
    const page = await sessionHistory(sessionId, { cursor, from, withImages, limit: LARGEST_PAGE });
    for (const event of page.items) all.items.push(event);
    all.unreadable += page.unreadable;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

/** Index of the event that a page begins with, which is what the agent takes as its cursor. */
function startOf({ cursor, from }: HistoryOptions): number | null {
  if (cursor === undefined) return from ?? null;
  const index = Number(cursor);
  if (cursor.trim() === '' || !Number.isSafeInteger(index) || index < 0) {
    throw invalidInput(`"${cursor.slice(0, 100)}" is no cursor of a history; pass the nextCursor of the page before`);
  }
  return index;
}
