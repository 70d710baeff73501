import {
  sessionHistory,
  type ContentBlock,
  type Turn,
  type TurnState,
  type Usage,
} from 'tauri-plugin-youyou-agent-api'
import { factsOf, type ErrorFacts } from './errors'
import { oncePerFrame } from './frame'
import { liveItems } from './live'
import { Store } from './store'
import { ThreadBuilder, type Item } from './thread'

/** What the window shows of one session. */
export interface ThreadView {
  /** Rows of everything that has ended. */
  settled: readonly Item[]
  /** Rows of the running turn. */
  live: readonly Item[]
  /** The running turn; before the agent has accepted it, an object without a state. */
  turn: { state: TurnState | null; stopping: boolean } | null
  loading: boolean
  loadError: ErrorFacts | null
  modelId: string | null
  contextTokens: number | null
  contextWindow: number | null
  usage: Usage | null
  sessionUsage: Usage | null
}

/** Events per page: big enough for few round trips, small enough not to hold up the window. */
const PAGE = 500

let pendingCount = 0
let threadCount = 0

/** The thread of one session: loads it, follows its turns, keeps what storage does not. */
export class ThreadModel {
  readonly view: Store<ThreadView>
  /** The same for the life of the thread, also when its session gets an id. */
  readonly key = `thread:${++threadCount}`
  #turn: Turn | null = null
  /** Turns that were followed here; their events may still arrive by the session's feed. */
  readonly #followed = new Set<string>()

  constructor(
    public sessionId: string | null,
    modelId: string | null,
  ) {
    this.view = new Store<ThreadView>({
      settled: [],
      live: [],
      turn: null,
      loading: false,
      loadError: null,
      modelId,
      contextTokens: null,
      contextWindow: null,
      usage: null,
      sessionUsage: null,
    })
  }

  /** The running turn, also before the agent has accepted it. */
  get turn(): Turn | null {
    return this.#turn
  }

  /** Whether a turn is or was followed here. */
  follows(turnId: string): boolean {
    return this.#turn !== null || this.#followed.has(turnId)
  }

  /** Reads the stored messages; `runningTurn` is shown from its events instead. */
  async load(runningTurn: string | null = null): Promise<void> {
    const { sessionId } = this
    if (sessionId === null) return
    this.view.patch({ loading: this.view.get().settled.length === 0, loadError: null })
    const builder = new ThreadBuilder(sessionId)
    let modelId: string | null = null
    try {
      let cursor: string | undefined
      do {
        const page = await sessionHistory(sessionId, { cursor, limit: PAGE })
        builder.add(page.items, runningTurn)
        for (const event of page.items) {
          if (event.type === 'assistantMessage') modelId = event.modelId
          else if (event.type === 'metadata') {
            const { metadata } = event
            if (metadata.type === 'created' || metadata.type === 'modelChanged') modelId = metadata.modelId
          }
        }
        cursor = page.nextCursor
      } while (cursor !== undefined)
    } catch (error) {
      this.view.patch({ loading: false, loadError: factsOf(error) })
      return
    }
    const view = this.view.get()
    this.view.patch({
      settled: withError(builder.items(), view.settled.at(-1)),
      loading: false,
      modelId: view.modelId ?? modelId,
    })
  }

  /** Shows what the user sends, before the agent has answered. */
  addOwn(content: ContentBlock[]): string {
    const key = `pending:${++pendingCount}`
    const item: Item = { kind: 'user', key, turnId: '', content, stored: null, time: Date.now() }
    this.view.patch({ settled: [...this.view.get().settled, item] })
    return key
  }

  /** Shows the words of a running turn that another window began: events do not carry them. */
  async addStoredWords(turnId: string): Promise<void> {
    const { sessionId } = this
    if (sessionId === null) return
    let cursor: string | undefined
    do {
      const page = await sessionHistory(sessionId, { cursor, limit: PAGE })
      for (const event of page.items) {
        if (event.type !== 'userMessage' || event.turnId !== turnId) continue
        // Loaded anew in the meantime, with everything.
        if (this.#turn?.id !== turnId) return
        this.add({
          kind: 'user',
          key: `${turnId}:user`,
          turnId,
          content: event.content,
          stored: { sessionId, index: event.index },
          time: event.timestamp,
        })
        return
      }
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  /** Takes a row away again. */
  remove(fits: (item: Item) => boolean): void {
    this.view.patch({ settled: this.view.get().settled.filter((item) => !fits(item)) })
  }

  add(item: Item): void {
    this.view.patch({ settled: [...this.view.get().settled, item] })
  }

  /**
   * Follows a turn to its end. Answers how it ended: `refused` means that the agent took
   * nothing and the caller says so.
   */
  async follow(turn: Turn): Promise<{ refused: ErrorFacts } | 'ended'> {
    this.#turn = turn
    this.view.patch({ turn: { state: turn.state ?? null, stopping: false }, live: [] })
    const off = turn.on('event', oncePerFrame(() => this.#show(turn)))
    this.#show(turn)
    let refused: ErrorFacts | null = null
    try {
      await turn.result()
    } catch (error) {
      // A failed turn says so in its own events; without any it was refused.
      if (!turn.state) refused = factsOf(error)
    }
    off()
    this.#settle(turn)
    return refused ? { refused } : 'ended'
  }

  /** Asks the running turn to stop; what it has shown stays. */
  async stop(): Promise<void> {
    const turn = this.#turn
    const shown = this.view.get().turn
    if (!turn || !shown || shown.stopping) return
    this.view.patch({ turn: { ...shown, stopping: true } })
    try {
      await turn.cancel()
    } catch {
      // The turn goes on, so the button comes back.
      const now = this.view.get().turn
      if (now && this.#turn === turn) this.view.patch({ turn: { ...now, stopping: false } })
    }
  }

  #show(turn: Turn): void {
    const { state } = turn
    if (!state || this.#turn !== turn) return
    const view = this.view.get()
    this.view.patch({
      live: liveItems(state, view.live),
      turn: { state, stopping: view.turn?.stopping ?? false },
    })
  }

  #settle(turn: Turn): void {
    if (this.#turn !== turn) return
    this.#turn = null
    if (turn.id !== null) this.#followed.add(turn.id)
    const view = this.view.get()
    const { state } = turn
    const rows = state ? liveItems(state, view.live) : []
    this.view.set({
      ...view,
      settled: rows.length > 0 ? [...view.settled, ...rows] : view.settled,
      live: [],
      turn: null,
      contextTokens: state?.contextTokens ?? view.contextTokens,
      contextWindow: state?.contextWindow ?? view.contextWindow,
      usage: state?.usage ?? view.usage,
      sessionUsage: state?.sessionUsage ?? view.sessionUsage,
    })
  }
}

/** Errors are not stored: the newest stays as long as its turn is the newest. */
function withError(items: Item[], newest: Item | undefined): Item[] {
  const stays = newest?.kind === 'error' && items.at(-1)?.turnId === newest.turnId
  return stays ? [...items, newest] : items
}
