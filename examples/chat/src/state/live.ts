import type { TurnPart, TurnState } from 'tauri-plugin-youyou-agent-api'
import type { ErrorFacts } from './errors'
import { endedEarly, startedTool, type AssistantItem, type Interruption, type Item, type Part, type ToolView } from './thread'

// A part that did not change gives the same object again, so that its rendering is reused.
const known = new WeakMap<TurnPart, Part>()

/**
 * The rows of one turn, as far as it is known. `before` are the rows of the last call:
 * answers that did not change stay the same objects.
 */
export function liveItems(state: TurnState, before: readonly Item[] = []): Item[] {
  const rows: Item[] = []
  const answers = new Map<number, AssistantItem>()
  const { turnId } = state
  const running = state.status === 'running'

  for (const part of state.parts) {
    const key = `${turnId}:part:${part.key}`
    switch (part.type) {
      case 'text':
      case 'reasoning':
      case 'tool': {
        // Notes may come in the middle of an answer; it stays one row all the same.
        let answer = answers.get(part.step)
        if (!answer) {
          answer = {
            kind: 'assistant',
            key: `${turnId}:${part.step}`,
            turnId,
            parts: [],
            live: false,
            interruption: null,
          }
          answers.set(part.step, answer)
          rows.push(answer)
        }
        answer.parts.push(viewOf(part, running))
        break
      }
      case 'compaction': {
        const { method, tokensBefore, tokensAfter } = part
        rows.push({ kind: 'compaction', key, turnId, method, tokensBefore, tokensAfter })
        break
      }
      case 'retry':
        rows.push({
          kind: 'note',
          key,
          turnId,
          note: {
            type: 'retry',
            attempt: part.attempt,
            delayMs: part.delayMs,
            reason: part.error.message,
          },
        })
        break
      case 'warning':
        rows.push({ kind: 'note', key, turnId, note: { type: 'warning', message: part.message } })
        break
      case 'error':
        rows.push({ kind: 'error', key, turnId, error: part.error, canRetry: false })
        break
    }
  }

  const newest = [...answers.values()].at(-1)
  if (newest) newest.live = running
  if (newest && state.status === 'completed') newest.interruption = endedEarly(state.stopReason)
  if (state.status === 'cancelled') interrupt(rows, newest, turnId, 'cancelled')
  if (state.status === 'failed') fail(rows, newest, state)
  return rows.map((row) => same(row, before))
}

function viewOf(part: TurnPart & { type: 'text' | 'reasoning' | 'tool' }, running: boolean): Part {
  if (part.type === 'tool' && part.state === 'running' && !running) {
    return { kind: 'tool', tool: { ...toolOf(part), state: 'skipped' } }
  }
  const seen = known.get(part)
  if (seen) return seen
  const view: Part =
    part.type === 'tool'
      ? { kind: 'tool', tool: toolOf(part) }
      : { kind: part.type, text: part.text }
  known.set(part, view)
  return view
}

function toolOf(part: TurnPart & { type: 'tool' }): ToolView {
  return {
    ...startedTool(part.callId, part.toolName, part.arguments),
    state: part.state,
    progress: part.progress ?? null,
    output: part.output ?? null,
    durationMs: part.durationMs ?? null,
    error: part.error ?? null,
  }
}

/** Marks the answer that was cut; where none was, a note says so. */
function interrupt(
  rows: Item[],
  newest: AssistantItem | undefined,
  turnId: string,
  interruption: Interruption,
): void {
  if (newest && newest.parts.at(-1)?.kind !== 'tool') newest.interruption = interruption
  else rows.push({ kind: 'note', key: `${turnId}:end`, turnId, note: { type: 'interrupted', interruption } })
}

function fail(rows: Item[], newest: AssistantItem | undefined, state: TurnState): void {
  if (newest && newest.parts.at(-1)?.kind !== 'tool') newest.interruption = 'failed'
  const { turnId } = state
  const error: ErrorFacts = state.error ?? { code: 'UNKNOWN', message: '', retryable: false }
  // The error came as an event just before; that row gets the button.
  const told = rows.findLastIndex((row) => row.kind === 'error' && row.error.code === error.code)
  if (told >= 0) rows.splice(told, 1)
  rows.push({ kind: 'error', key: `${turnId}:error`, turnId, error, canRetry: true })
}

function same(row: Item, before: readonly Item[]): Item {
  if (row.kind !== 'assistant') return before.find((one) => one.key === row.key && equal(one, row)) ?? row
  const old = before.find((one) => one.key === row.key)
  const unchanged =
    old?.kind === 'assistant' &&
    old.live === row.live &&
    old.interruption === row.interruption &&
    old.parts.length === row.parts.length &&
    old.parts.every((part, index) => part === row.parts[index])
  return unchanged ? old : row
}

const equal = (a: Item, b: Item) => JSON.stringify(a) === JSON.stringify(b)
