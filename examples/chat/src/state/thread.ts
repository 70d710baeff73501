import type { ContentBlock, JsonValue, SessionEvent, StopReason } from 'tauri-plugin-youyou-agent-api'
import type { ErrorFacts } from './errors'

/** What the thread shows, row by row; made from stored events here, from a running turn in `live.ts`. */
export type Item = UserItem | AssistantItem | CompactionItem | NoteItem | ErrorItem

interface Base {
  /** The same for a row while it streams and after a reload, so that it is never built twice. */
  key: string
  turnId: string
}

/** What the user said. */
export interface UserItem extends Base {
  kind: 'user'
  content: ContentBlock[]
  /** Where it is stored; `null` while only this window knows it. */
  stored: { sessionId: string; index: number } | null
  time: number
}

/** Why a turn did not end by itself; the message can be tried again. */
export type Interruption = 'cancelled' | 'failed' | 'processEnded'

/** Why an answer is not whole: its turn was cut, or the model's provider ended it early. */
export type Incomplete = Interruption | EndedEarly

/** Why a provider ended an answer before the model had said all. */
export type EndedEarly = 'length' | 'contentFilter' | 'refusal'

/** That reason, if the answer did end early. */
export function endedEarly(reason: StopReason | null | undefined): EndedEarly | null {
  return isEarlyEnd(reason) ? reason : null
}

/** Whether the turn ended well though the answer is not whole: there is nothing to try again. */
export function isEarlyEnd(reason: Incomplete | StopReason | null | undefined): reason is EndedEarly {
  return reason === 'length' || reason === 'contentFilter' || reason === 'refusal'
}

/** One answer of the model. */
export interface AssistantItem extends Base {
  kind: 'assistant'
  parts: Part[]
  live: boolean
  interruption: Incomplete | null
}

export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'tool'; tool: ToolView }

/** A tool call with what is known of it. */
export interface ToolView {
  callId: string
  toolName: string
  arguments: JsonValue
  state: 'running' | 'done' | 'error' | 'skipped'
  progress: string | null
  output: string | null
  durationMs: number | null
  error: string | null
}

export interface CompactionItem extends Base {
  kind: 'compaction'
  method: 'summarized' | 'truncated'
  tokensBefore: number
  tokensAfter: number
}

export type Note =
  | { type: 'retry'; attempt: number; delayMs: number; reason: string }
  | { type: 'warning'; message: string }
  | { type: 'modelChanged'; modelId: string }
  | { type: 'imagesRefused' }
  | { type: 'interrupted'; interruption: Interruption }

export interface NoteItem extends Base {
  kind: 'note'
  note: Note
}

export interface ErrorItem extends Base {
  kind: 'error'
  error: ErrorFacts
  /** Whether its turn can be run again. */
  canRetry: boolean
}

/** Runs the turn of a row again. */
export type Retry = (turnId: string) => void

/** Builds the thread from stored events, in any number of pages. */
export class ThreadBuilder {
  readonly #sessionId: string
  #items: Item[] = []
  #tools = new Map<string, { item: number; part: number }>()
  #steps = new Map<string, number>()
  /** Index of the newest event seen. */
  lastIndex: number | null = null

  constructor(sessionId: string) {
    this.#sessionId = sessionId
  }

  /** `runningTurn`: its answers are left to the live view. */
  add(events: readonly SessionEvent[], runningTurn: string | null = null): void {
    for (const event of events) {
      this.lastIndex = event.index
      this.#addOne(event, event.turnId !== '' && event.turnId === runningTurn)
    }
  }

  items(): Item[] {
    // A call without a result: its process died, or it was never reached.
    return this.#items.map((item) =>
      item.kind === 'assistant' && item.parts.some(isRunning)
        ? { ...item, parts: item.parts.map((part) => (isRunning(part) ? skipped(part) : part)) }
        : item,
    )
  }

  #addOne(event: SessionEvent, running: boolean): void {
    const { turnId } = event
    switch (event.type) {
      case 'userMessage':
        this.#items.push({
          kind: 'user',
          key: `${turnId}:user`,
          turnId,
          content: event.content,
          stored: { sessionId: this.#sessionId, index: event.index },
          time: event.timestamp,
        })
        break
      case 'assistantMessage':
        if (!running) this.#addAnswer(event, turnId)
        break
      case 'toolCall':
        this.#change(event.callId, (tool) => ({ ...tool, arguments: event.arguments }))
        break
      case 'toolResult':
        this.#change(event.callId, (tool) => ({
          ...tool,
          state: event.isError ? 'error' : 'done',
          output: event.output,
          durationMs: event.durationMs,
          error: event.error ?? null,
        }))
        break
      case 'metadata':
        if (!running) this.#addMetadata(event.index, turnId, event.metadata)
        break
      case 'systemMessage':
        break
    }
  }

  #addAnswer(event: SessionEvent & { type: 'assistantMessage' }, turnId: string): void {
    const step = this.#steps.get(turnId) ?? 0
    this.#steps.set(turnId, step + 1)
    const parts: Part[] = []
    for (const part of event.parts) {
      if (part.type === 'toolCall') {
        this.#tools.set(part.callId, { item: this.#items.length, part: parts.length })
        parts.push({ kind: 'tool', tool: startedTool(part.callId, part.toolName, part.arguments) })
      } else if (part.text !== '') {
        parts.push({ kind: part.type, text: part.text })
      }
    }
    const early = endedEarly(event.stopReason)
    const interruption = event.interruption ?? early ?? (event.status === 'complete' ? null : 'processEnded')
    if (parts.length === 0 && interruption === null) return
    this.#items.push({
      kind: 'assistant',
      key: `${turnId}:${step}`,
      turnId,
      parts,
      live: false,
      interruption,
    })
  }

  #addMetadata(
    index: number,
    turnId: string,
    metadata: (SessionEvent & { type: 'metadata' })['metadata'],
  ): void {
    const key = `${turnId}:meta:${index}`
    switch (metadata.type) {
      case 'compacted':
        this.#items.push({
          kind: 'compaction',
          key,
          turnId,
          method: metadata.method,
          tokensBefore: metadata.tokensBefore,
          tokensAfter: metadata.tokensAfter,
        })
        break
      case 'modelChanged':
        this.#note(key, turnId, { type: 'modelChanged', modelId: metadata.modelId })
        break
      case 'turnInterrupted':
        this.#note(key, turnId, { type: 'interrupted', interruption: metadata.interruption })
        break
      case 'imagesRefused':
        this.#note(key, turnId, { type: 'imagesRefused' })
        break
      case 'created':
      case 'turnEndedSilently':
      case 'memoryCheckpoint':
        break
    }
  }

  #note(key: string, turnId: string, note: Note): void {
    this.#items.push({ kind: 'note', key, turnId, note })
  }

  #change(callId: string, change: (tool: ToolView) => ToolView): void {
    const place = this.#tools.get(callId)
    const item = place && this.#items[place.item]
    const part = item?.kind === 'assistant' && place ? item.parts[place.part] : undefined
    if (part?.kind === 'tool') part.tool = change(part.tool)
  }
}

/** A call of which only the start is known. */
export function startedTool(callId: string, toolName: string, args: JsonValue): ToolView {
  return {
    callId,
    toolName,
    arguments: args,
    state: 'running',
    progress: null,
    output: null,
    durationMs: null,
    error: null,
  }
}

type ToolPart = Part & { kind: 'tool' }
const isRunning = (part: Part): part is ToolPart =>
  part.kind === 'tool' && part.tool.state === 'running'
const skipped = (part: ToolPart): Part => ({
  kind: 'tool',
  tool: { ...part.tool, state: 'skipped' },
})
