import {
  deleteSession,
  findSessions,
  listSessions,
  renameSession,
  type SessionSummary,
} from 'tauri-plugin-youyou-agent-api'
import { factsOf, type ErrorFacts } from './errors'
import { Store } from './store'

/** The list of sessions. */
export interface SessionList {
  items: readonly SessionSummary[]
  nextCursor: string | null
  loaded: boolean
  error: ErrorFacts | null
  query: string
  /** What fits the query; `null` while there is no query. */
  found: readonly SessionSummary[] | null
  /** Deleted on screen, not yet for real. */
  hidden: ReadonlySet<string>
  /** The session in which a turn runs. */
  running: string | null
}

const PAGE = 60

/** How long a deleted session can be brought back, in milliseconds. */
export const UNDO_MS = 6_000

class Sessions {
  readonly state = new Store<SessionList>({
    items: [],
    nextCursor: null,
    loaded: false,
    error: null,
    query: '',
    found: null,
    hidden: new Set(),
    running: null,
  })
  #search = 0
  /** Whether pages behind the newest were loaded. Without them the list never outgrows one page. */
  #hasOlder = false

  /** Reads the newest page again; older pages stay if they were asked for. */
  async refresh(): Promise<void> {
    try {
      const page = await listSessions({ limit: PAGE })
      const { items, nextCursor } = this.state.get()
      const newest = kept(page.items, items)
      const fresh = new Set(newest.map((one) => one.sessionId))
      const oldest = newest.at(-1)?.updatedAt ?? 0
      const older = this.#hasOlder && page.nextCursor !== undefined
        ? items.filter((one) => !fresh.has(one.sessionId) && one.updatedAt <= oldest)
        : []
      this.state.patch({
        items: [...newest, ...older],
        nextCursor: older.length > 0 ? nextCursor : (page.nextCursor ?? null),
        loaded: true,
        error: null,
      })
    } catch (error) {
      this.state.patch({ loaded: true, error: factsOf(error) })
    }
    if (this.state.get().query.trim() !== '') await this.search(this.state.get().query)
  }

  async loadMore(): Promise<void> {
    const { nextCursor } = this.state.get()
    if (nextCursor === null) return
    const page = await listSessions({ limit: PAGE, cursor: nextCursor })
    this.#hasOlder = true
    const { items } = this.state.get()
    const known = new Set(items.map((one) => one.sessionId))
    this.state.patch({
      items: [...items, ...page.items.filter((one) => !known.has(one.sessionId))],
      nextCursor: page.nextCursor ?? null,
    })
  }

  /** Searches as one types; an answer that a newer query overtook is dropped. */
  async search(query: string): Promise<void> {
    const number = ++this.#search
    this.state.patch(query.trim() === '' ? { query, found: null } : { query })
    if (query.trim() === '') return
    try {
      const found = await findSessions(query.trim())
      // The agent compares literally; what is loaded already is matched without regard to case.
      const known = new Set(found.map((one) => one.sessionId))
      const wanted = query.trim().toLowerCase()
      const more = this.state
        .get()
        .items.filter((one) => !known.has(one.sessionId) && one.title.toLowerCase().includes(wanted))
      const all = [...found, ...more].sort((a, b) => b.updatedAt - a.updatedAt)
      if (number === this.#search) this.state.patch({ found: all, error: null })
    } catch (error) {
      if (number === this.#search) this.state.patch({ found: [], error: factsOf(error) })
    }
  }

  async rename(sessionId: string, title: string): Promise<void> {
    const apply = (one: SessionSummary) => (one.sessionId === sessionId ? { ...one, title } : one)
    const { items, found } = this.state.get()
    this.state.patch({ items: items.map(apply), found: found?.map(apply) ?? null })
    try {
      await renameSession(sessionId, title)
    } finally {
      await this.refresh()
    }
  }

  /**
   * Deletes after a moment in which it can be undone; `before` closes the session if it is
   * open. A window closed in that moment deletes nothing.
   */
  remove(
    sessionId: string,
    before: () => Promise<void>,
    onError: (facts: ErrorFacts) => void,
  ): () => void {
    this.#hide(sessionId, true)
    const timer = setTimeout(() => {
      void (async () => {
        try {
          await before()
          await deleteSession(sessionId)
        } catch (error) {
          onError(factsOf(error))
        }
        await this.refresh()
        this.#hide(sessionId, false)
      })()
    }, UNDO_MS)
    return () => {
      clearTimeout(timer)
      this.#hide(sessionId, false)
    }
  }

  setRunning(running: string | null): void {
    this.state.patch({ running })
  }

  titleOf(sessionId: string | null): string | null {
    const { items, found } = this.state.get()
    return [...items, ...(found ?? [])].find((one) => one.sessionId === sessionId)?.title ?? null
  }

  #hide(sessionId: string, hide: boolean): void {
    const hidden = new Set(this.state.get().hidden)
    if (hide) hidden.add(sessionId)
    else hidden.delete(sessionId)
    this.state.patch({ hidden })
  }
}

/** The sessions as they are now; those that did not change stay the same objects, so that their rows are not drawn again. */
function kept(now: readonly SessionSummary[], before: readonly SessionSummary[]): SessionSummary[] {
  const known = new Map(before.map((one) => [one.sessionId, one]))
  return now.map((one) => {
    const old = known.get(one.sessionId)
    return old && JSON.stringify(old) === JSON.stringify(one) ? old : one
  })
}

export const sessions = new Sessions()
