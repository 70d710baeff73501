import { describe, expect, it } from 'vitest'
import { reduceTurn, type AgentEvent, type TurnState } from 'tauri-plugin-youyou-agent-api'
import { liveItems } from '../src/state/live'

type Kind = AgentEvent extends infer E
  ? E extends AgentEvent
    ? Omit<E, 'sessionId' | 'turnId' | 'timestamp' | 'sequence'>
    : never
  : never

let sequence = 0
function play(kinds: Kind[], before?: TurnState): TurnState {
  let state = before
  for (const kind of kinds) {
    sequence++
    const event = { sessionId: 's', turnId: 't', timestamp: 1, sequence, firstSequence: sequence, ...kind }
    state = reduceTurn(state, event as AgentEvent)
  }
  if (!state) throw new Error('no events')
  return state
}

const started: Kind = { type: 'turnStarted' }
const text = (delta: string, step = 0): Kind =>
  ({ type: 'textDelta', step, delta }) as unknown as Kind
const error = { code: 'PROVIDER_ERROR', message: 'no', retryable: true, source: 'provider' } as const
const call: Kind = { type: 'toolCallStart', step: 0, callId: 'a', toolName: 'read', arguments: {} }
const failed = (code: 'PROVIDER_ERROR' | 'STORAGE_ERROR'): Kind => ({
  type: 'turnComplete',
  status: 'failed',
  error: { ...error, code },
  assistantOutput: '',
  usage: {},
  sessionUsage: {},
  contextTokens: 0,
  contextWindow: 1,
})

describe('the rows of a running turn', () => {
  it('is one row per answer, with the keys that a stored turn gets', () => {
    const rows = liveItems(play([started, text('one'), call, text('two', 1)]))
    expect(rows.map((row) => [row.kind, row.key])).toEqual([
      ['assistant', 't:0'],
      ['assistant', 't:1'],
    ])
  })

  it('keeps rows and parts that did not change, so that only the newest is drawn again', () => {
    const state = play([started, text('one'), call, text('two', 1)])
    const before = liveItems(state)
    const after = liveItems(play([text(' more', 1)], state), before)
    expect(after[0]).toBe(before[0])
    expect(after[1]).not.toBe(before[1])
  })

  it('keeps an answer one row when a warning comes in its middle', () => {
    const rows = liveItems(
      play([started, text('one'), { type: 'warning', message: 'slow', source: 'plugin' }, text(' two')]),
    )
    expect(rows.filter((row) => row.kind === 'assistant')).toHaveLength(1)
    expect(rows.filter((row) => row.kind === 'note')).toHaveLength(1)
  })

  it('marks the text that a cancel cut', () => {
    const [row] = liveItems(play([started, text('half'), { type: 'turnCancelled', usage: {} }]))
    expect(row).toMatchObject({ interruption: 'cancelled', live: false })
  })

  it('marks the answer that the length limit ended', () => {
    const ended: Kind = { ...failed('PROVIDER_ERROR'), status: 'completed', error: null, stopReason: 'length' } as Kind
    const [row] = liveItems(play([started, text('half'), ended]))
    expect(row).toMatchObject({ interruption: 'length', live: false })
  })

  it('says that a turn was stopped before it showed anything', () => {
    const rows = liveItems(play([started, { type: 'turnCancelled', usage: {} }]))
    expect(rows).toMatchObject([{ kind: 'note', note: { type: 'interrupted' } }])
  })

  it('shows the error of a failed turn once, last, with a way to run it again', () => {
    const rows = liveItems(
      play([started, text('half'), { type: 'error', error }, failed('PROVIDER_ERROR')]),
    )
    expect(rows.map((row) => row.kind)).toEqual(['assistant', 'error'])
    expect(rows.at(-1)).toMatchObject({ canRetry: true, error: { code: 'PROVIDER_ERROR' } })
  })

  it('leaves no tool running after the end', () => {
    const rows = liveItems(play([started, call, { type: 'turnCancelled', usage: {} }]))
    expect(rows[0]).toMatchObject({ parts: [{ tool: { state: 'skipped' } }] })
  })
})
