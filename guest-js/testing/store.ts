/**
 * The mock agent's stored sessions and its models.
 */

import type { CompactionOutcome, ContentBlock, HistoryPage, ListPage, ModelEntry, SessionEvent, SessionSummary, Usage } from '../bindings.js';
import { refuse, type MockScript, type MockSessionEvent } from './script.js';

const MOCK_MODEL: ModelEntry = {
  providerId: 'mock',
  id: 'mock-1',
  displayName: 'Mock model',
  contextWindow: 128_000,
  capabilities: { toolUse: true, vision: true, streaming: true, reasoning: true },
};

/** A session as it is kept. */
export interface StoredSession {
  sessionId: string;
  /** Empty before the first message. */
  title: string;
  modelId: string;
  createdAt: number;
  updatedAt: number;
  events: SessionEvent[];
  /** The last message, where its turn failed before it was stored. */
  unstored: ContentBlock[] | null;
  usage: Usage;
}

/** All sessions, and what a session can be opened with. */
export class MockStore {
  /** The models that can be used. */
  readonly models: ModelEntry[];
  readonly #sessions = new Map<string, StoredSession>();

  constructor(script: MockScript) {
    this.models = script.models ?? [MOCK_MODEL];
    for (const { sessionId, title, modelId, updatedAt = Date.now(), events = [] } of script.sessions ?? []) {
      const session = this.create(sessionId, this.model(modelId), updatedAt);
      session.title = title;
      session.events = events.map(
        (event, index) => ({ index, timestamp: updatedAt, turnId: `stored-${index}`, ...event }) as SessionEvent,
      );
    }
  }

  /** The model with that id, or the first one. */
  model(modelId: string | null | undefined): string {
    const model = modelId == null ? this.models[0] : this.models.find(({ id }) => id === modelId);
    return model?.id ?? refuse('MODEL_NOT_SUPPORTED', `no provider declares the model "${String(modelId)}"`);
  }

  create(sessionId: string, modelId: string, now = Date.now()): StoredSession {
    const session: StoredSession = {
      sessionId,
      title: '',
      modelId,
      createdAt: now,
      updatedAt: now,
      events: [],
      unstored: null,
      usage: {},
    };
    this.#sessions.set(sessionId, session);
    return session;
  }

  get(sessionId: unknown): StoredSession {
    const session = this.#sessions.get(sessionId as string);
    return session ?? refuse('SESSION_NOT_FOUND', `there is no session "${String(sessionId)}"`);
  }

  delete(sessionId: string): void {
    this.#sessions.delete(this.get(sessionId).sessionId);
  }

  append(session: StoredSession, turnId: string, event: MockSessionEvent): void {
    const timestamp = Date.now();
    session.updatedAt = Math.max(session.updatedAt, timestamp);
    session.events.push({ index: session.events.length, timestamp, turnId, ...event } as SessionEvent);
  }

  /** Makes a session's context a quarter as large. */
  compact(session: StoredSession): CompactionOutcome {
    const tokensBefore = contextTokens(session);
    if (session.events.length === 0) return { tokensBefore, tokensAfter: tokensBefore, messagesRemoved: 0 };
    const tokensAfter = Math.ceil(tokensBefore / 4);
    const method = 'summarized';
    const boundary = session.events.length;
    const summary = '[Summary of the conversation so far]';
    const record = { method, summary, boundary, tokensBefore, tokensAfter } as const;
    this.append(session, '', { type: 'metadata', metadata: { type: 'compacted', ...record } });
    return { method, tokensBefore, tokensAfter, messagesRemoved: messageCount(session) };
  }

  history(sessionId: unknown, cursor: number | null, limit: number | null, withImages: boolean | null): HistoryPage {
    const size = limit ?? 50;
    const rest = this.get(sessionId).events.filter((event) => event.index >= (cursor ?? 0));
    const events = rest.slice(0, size).map((event) => (withImages ? event : withoutImages(event)));
    const next = rest[size];
    return { events, unreadable: 0, ...(next ? { nextCursor: next.index } : {}) };
  }

  list(cursor: string | null, limit: number | null): ListPage {
    const all = this.#summaries();
    const start = cursor === null ? 0 : all.findIndex((row) => row.sessionId === cursor) + 1;
    const sessions = all.slice(start, start + (limit ?? 50));
    const last = sessions.at(-1);
    return { sessions, ...(last && last !== all.at(-1) ? { nextCursor: last.sessionId } : {}) };
  }

  find(query: string): SessionSummary[] {
    if (query.trim() === '') return [];
    const all = this.#summaries();
    const ways: ((row: SessionSummary) => boolean)[] = [
      (row) => row.sessionId === query,
      (row) => row.title === query,
      (row) => row.sessionId.startsWith(query),
      (row) => row.title.includes(query),
    ];
    return ways.map((fits) => all.filter(fits)).find((rows) => rows.length > 0) ?? [];
  }

  #summaries(): SessionSummary[] {
    return [...this.#sessions.values()]
      .filter((session) => messageCount(session) > 0)
      .map((session) => ({
        sessionId: session.sessionId,
        title: session.title,
        createdAt: session.createdAt,
        updatedAt: session.updatedAt,
        messageCount: messageCount(session),
      }))
      .sort((a, b) => b.updatedAt - a.updatedAt || (a.sessionId < b.sessionId ? -1 : 1));
  }
}

/** User and assistant messages of a session. */
export function messageCount({ events }: StoredSession): number {
  return events.filter(({ type }) => type === 'userMessage' || type === 'assistantMessage').length;
}

/** Whether a session's last turn did not end with a whole answer, so that it can be run again. */
export function isUnanswered({ events }: StoredSession): boolean {
  for (const event of events.toReversed()) {
    if (event.type === 'assistantMessage') {
      // An answer that was cut at a limit is an answer all the same.
      return event.interruption != null || event.parts.some(({ type }) => type === 'toolCall');
    }
    if (event.type !== 'metadata') return event.type !== 'systemMessage';
    if (event.metadata.type === 'turnInterrupted') return true;
    if (event.metadata.type === 'turnEndedSilently') return false;
  }
  return false;
}

/** Estimated size of a session's context, in tokens: its newest compaction and what came after. */
export function contextTokens({ events }: StoredSession): number {
  const at = events.findLastIndex((event) => event.type === 'metadata' && event.metadata.type === 'compacted');
  const compaction = events[at];
  const before =
    compaction?.type === 'metadata' && compaction.metadata.type === 'compacted' ? compaction.metadata.tokensAfter : 200;
  const characters = events
    .slice(at + 1)
    .reduce((sum, event) => sum + JSON.stringify(withoutImages(event)).length, 0);
  return before + Math.ceil(characters / 4);
}

function withoutImages(event: SessionEvent): SessionEvent {
  if (event.type !== 'userMessage') return event;
  const content = event.content.map((block) => (block.type === 'image' ? { ...block, data: '' } : block));
  return { ...event, content };
}
