import {
  createSession,
  currentSession,
  resumeSession,
  type ContentBlock,
  type Session,
  type Turn,
} from 'tauri-plugin-youyou-agent-api'
import { catalog, preferredModel } from './catalog'
import { factsOf, type ErrorFacts } from './errors'
import { prefer, preferences } from './preferences'
import { sessions } from './sessions'
import { Store } from './store'
import { ThreadModel } from './threadModel'

/** What the window is about. */
export interface ChatState {
  /** The thread on screen. */
  shown: ThreadModel
  /** Whether a message waits for its session to be opened. */
  opening: boolean
  /** The session whose running turn stands in the way of sending here. */
  elsewhere: string | null
  /** Why the last message was refused; its text is back in the composer. */
  refusal: ErrorFacts | null
}

/**
 * The agent has one open session; the window may look at any. A look costs nothing: a
 * session is opened only when something is sent to it, so that reading an old chat never
 * closes or stops the one in use.
 */
class Chat {
  readonly state = new Store<ChatState>({
    shown: new ThreadModel(null, null),
    opening: false,
    elsewhere: null,
    refusal: null,
  })
  #open: { session: Session; thread: ThreadModel; off(): void } | null = null

  /** Goes on where a reload or another window is: the open session, in mid-turn if need be. */
  async start(): Promise<void> {
    const session = await currentSession().catch(() => null)
    if (session) {
      const thread = await this.#adopt(session)
      this.state.patch({ shown: thread })
    }
  }

  /** Shows a session, or with `null` a new chat that is created by its first message. */
  async show(sessionId: string | null): Promise<void> {
    const { shown } = this.state.get()
    if (sessionId !== null && shown.sessionId === sessionId) return
    this.state.patch({ elsewhere: null, refusal: null })
    if (sessionId === null) {
      if (shown.sessionId !== null) this.state.patch({ shown: new ThreadModel(null, null) })
      return
    }
    if (this.#open?.thread.sessionId === sessionId) {
      this.state.patch({ shown: this.#open.thread })
      return
    }
    const thread = new ThreadModel(sessionId, null)
    // Begun first, so that the thread is never seen empty.
    const loaded = thread.load()
    this.state.patch({ shown: thread })
    await loaded
  }

  /** Sends to the session on screen. `false`: refused, nothing was taken. */
  async send(content: ContentBlock[]): Promise<boolean> {
    const { shown } = this.state.get()
    this.state.patch({ refusal: null, elsewhere: null })
    const key = shown.addOwn(content)
    const session = await this.#opened(shown)
    if (!session) {
      shown.remove((item) => item.key === key)
      return false
    }
    const { effort } = preferences.get()
    const modelId = this.modelOf(shown)
    const turn = session.send(content, {
      ...(modelId !== null ? { modelId } : {}),
      ...(effort !== 'auto' && this.#reasons(modelId) ? { reasoningEffort: effort } : {}),
    })
    const refused = await this.#run(shown, turn, (facts) => {
      shown.remove((item) => item.key === key)
      this.state.patch({ refusal: facts })
    })
    return !refused
  }

  /** Runs a failed or stopped turn again, also one whose message could not be stored. */
  async retry(turnId: string): Promise<void> {
    const { shown } = this.state.get()
    const session = await this.#opened(shown)
    if (!session) return
    shown.remove((one) => one.kind === 'error' && one.turnId === turnId)
    await this.#run(shown, session.retry(), (refusal) => this.state.patch({ refusal }))
  }

  /** Stops the turn on screen. */
  stop(): void {
    void this.state.get().shown.stop()
  }

  /** Stops the turn that stands in the way. */
  async stopElsewhere(): Promise<void> {
    const turn = await (await currentSession())?.activeTurn()
    await turn?.cancel()
    await turn?.result().catch(() => undefined)
    this.state.patch({ elsewhere: null })
  }

  /** The model that the next message of a thread goes to. */
  modelOf(thread: ThreadModel): string | null {
    const { models } = catalog.get()
    const { modelId } = thread.view.get()
    return models.some((model) => model.id === modelId) ? modelId : preferredModel(models)
  }

  setModel(modelId: string): void {
    prefer({ modelId })
    this.state.get().shown.view.patch({ modelId })
  }

  /** Makes the context of the session on screen smaller now. */
  async compact(signal: AbortSignal): Promise<void> {
    const { shown } = this.state.get()
    const session = await this.#opened(shown)
    if (!session) return
    const before = shown.view.get().contextTokens
    const outcome = await session.compact({ signal })
    const info = await session.info()
    shown.view.patch({ contextTokens: info.contextTokens, contextWindow: info.contextWindow })
    if (outcome.tokensAfter < (before ?? Infinity)) {
      await shown.load()
    }
  }

  /** Closes a session if it is the open one, as deleting it demands. */
  async closeIfOpen(sessionId: string): Promise<void> {
    if (this.#open?.thread.sessionId === sessionId) {
      const { session } = this.#open
      this.#release()
      await session.close().catch(() => undefined)
      return
    }
    const session = await currentSession()
    if (session?.id === sessionId) await session.close().catch(() => undefined)
  }

  /** The open session of a thread, opened if need be; `null` if that was refused. */
  async #opened(thread: ThreadModel): Promise<Session | null> {
    // Also while a turn runs: the agent then refuses the message, and nothing is stopped for it.
    if (this.#open?.thread === thread) {
      const info = await currentSession().catch(() => null)
      if (info?.id === thread.sessionId) return this.#open.session
    }
    this.state.patch({ opening: true })
    try {
      const busy = await this.#busyElsewhere(thread)
      if (busy !== null) {
        this.state.patch({ elsewhere: busy })
        return null
      }
      const modelId = this.modelOf(thread) ?? undefined
      const session =
        thread.sessionId === null
          ? await createSession({ replace: true, modelId })
          : await resumeSession(thread.sessionId, { replace: true, modelId })
      thread.sessionId = session.id
      this.#take(session, thread)
      return session
    } catch (error) {
      this.state.patch({ refusal: factsOf(error) })
      return null
    } finally {
      this.state.patch({ opening: false })
    }
  }

  async #busyElsewhere(thread: ThreadModel): Promise<string | null> {
    const current = await currentSession()
    if (!current || current.id === thread.sessionId) return null
    const { state } = await current.info()
    return state === 'running' || state === 'cancelling' ? current.id : null
  }

  /** Shows an open session with all it has, and goes on with its running turn. */
  async #adopt(session: Session): Promise<ThreadModel> {
    const thread = new ThreadModel(session.id, session.modelId)
    this.#take(session, thread)
    const turn = await session.activeTurn()
    const info = await session.info().catch(() => null)
    if (info) {
      thread.view.patch({
        modelId: info.modelId,
        contextTokens: info.contextTokens,
        contextWindow: info.contextWindow,
      })
    }
    await thread.load(turn?.id ?? null)
    if (turn) void this.#run(thread, turn, () => undefined)
    return thread
  }

  #take(session: Session, thread: ThreadModel): void {
    this.#release()
    // The session's own feed only tells that another window began a turn: the turn itself
    // is followed by an attachment of its own, which starts at its first event.
    const off = session.onEvent((event) => {
      if (event.type === 'turnStarted' && !thread.follows(event.turnId)) void this.#join(session, thread, event.turnId)
    })
    this.#open = { session, thread, off }
  }

  #release(): void {
    this.#open?.off()
    this.#open = null
  }

  /** Follows a turn that another window began. */
  async #join(session: Session, thread: ThreadModel, turnId: string): Promise<void> {
    const turn = await session.activeTurn().catch(() => null)
    if (thread.turn !== null) return
    if (turn?.id !== turnId) {
      await thread.load()
      return
    }
    const shown = this.#run(thread, turn, () => undefined)
    // The user's words are stored before the model is asked; events do not carry them.
    const off = turn.on('event', (event) => {
      if (event.type === 'turnStarted') return
      off()
      void thread.addStoredWords(turnId)
    })
    await shown
    if (!thread.view.get().settled.some((item) => item.kind === 'user' && item.turnId === turnId)) {
      await thread.load()
    }
  }

  /** Follows a turn; answers whether it was refused. */
  async #run(
    thread: ThreadModel,
    turn: Turn,
    onRefused: (facts: ErrorFacts) => void,
  ): Promise<boolean> {
    sessions.setRunning(thread.sessionId)
    const off = turn.on('event', (event) => {
      // From here on the session is stored, so the list has it.
      if (event.type === 'turnStarted') return
      off()
      void sessions.refresh()
    })
    const end = await thread.follow(turn)
    off()
    sessions.setRunning(null)
    if (end !== 'ended') {
      onRefused(end.refused)
      return true
    }
    void sessions.refresh()
    return false
  }

  #reasons(modelId: string | null): boolean {
    return catalog.get().models.some((model) => model.id === modelId && model.capabilities.reasoning)
  }
}

export const chat = new Chat()
