/**
 * Stored sessions, open or not: lists, history, titles, deleting.
 */

import { commands, type SessionEvent, type SessionSummary } from './bindings.js';
import { settle } from './error.js';

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

/** Stored sessions, newest first, page by page. Empty without a session storage. Fails with `STORAGE_ERROR`. */
export async function listSessions(
  options: { limit?: number | undefined; cursor?: string | undefined } = {},
): Promise<Page<SessionSummary>> {
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

/** Stored events of any session, in order, page by page. Fails with `SESSION_NOT_FOUND` or `STORAGE_ERROR`. */
export async function sessionHistory(sessionId: string, options: HistoryOptions = {}): Promise<HistoryPage> {
  const { cursor = null, limit = null, withImages = null } = options;
  const page = await settle(commands.sessionHistory(sessionId, cursor, limit, withImages));
  return { events: page.events, ...(page.nextCursor != null ? { nextCursor: page.nextCursor } : {}) };
}
