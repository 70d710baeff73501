import { describe, expect, it } from 'vitest'
import type { SessionEvent } from 'tauri-plugin-youyou-agent-api'
import { ThreadBuilder, type Item } from '../src/state/thread'

let index = 0
const at = (turnId: string) => ({ index: index++, timestamp: 1_000, turnId })

const said = (turnId: string, text: string): SessionEvent => ({
  ...at(turnId),
  type: 'userMessage',
  content: [{ type: 'text', text }],
})

type Answer = Extract<SessionEvent, { type: 'assistantMessage' }>
const answered = (
  turnId: string,
  parts: Answer['parts'],
  rest: Partial<Answer> = {},
): SessionEvent => ({
  ...at(turnId),
  type: 'assistantMessage',
  parts,
  status: 'complete',
  providerId: 'p',
  modelId: 'm',
  ...rest,
})

function built(events: SessionEvent[], runningTurn: string | null = null): Item[] {
  const builder = new ThreadBuilder('s')
  builder.add(events, runningTurn)
  return builder.items()
}

describe('the thread of a stored session', () => {
  it('puts results to their calls, whichever order they were stored in', () => {
    const call = (callId: string) =>
      ({ type: 'toolCall', callId, toolName: 'read', arguments: { path: callId } }) as const
    const result = (callId: string, isError: boolean): SessionEvent => ({
      ...at('t'),
      type: 'toolResult',
      callId,
      toolName: 'read',
      output: `output of ${callId}`,
      isError,
      durationMs: 5,
    })
    const [, answer] = built([
      said('t', 'read both'),
      answered('t', [call('a'), call('b')]),
      result('b', true),
      result('a', false),
    ])
    expect(answer?.kind === 'assistant' && answer.parts).toMatchObject([
      { kind: 'tool', tool: { callId: 'a', state: 'done', output: 'output of a' } },
      { kind: 'tool', tool: { callId: 'b', state: 'error', output: 'output of b' } },
    ])
  })

  it('shows the arguments that were really used', () => {
    const [answer] = built([
      answered('t', [{ type: 'toolCall', callId: 'a', toolName: 'read', arguments: { path: '~' } }]),
      { ...at('t'), type: 'toolCall', callId: 'a', toolName: 'read', arguments: { path: '/home' } },
    ])
    expect(answer).toMatchObject({ parts: [{ tool: { arguments: { path: '/home' } } }] })
  })

  it('never leaves a call of a stored turn running', () => {
    const [answer] = built([
      answered('t', [{ type: 'toolCall', callId: 'a', toolName: 'read', arguments: {} }]),
    ])
    expect(answer).toMatchObject({ parts: [{ tool: { state: 'skipped' } }] })
  })

  it('marks an incomplete answer with its reason', () => {
    const cut = { status: 'incomplete', interruption: 'cancelled' } as const
    const [answer] = built([answered('t', [{ type: 'text', text: 'half' }], cut)])
    expect(answer).toMatchObject({ interruption: 'cancelled' })
  })

  it('numbers the answers of a turn, so that rows keep their keys after a reload', () => {
    const items = built([
      said('t', 'hi'),
      answered('t', [{ type: 'text', text: 'one' }]),
      answered('t', [{ type: 'text', text: 'two' }]),
    ])
    expect(items.map((item) => item.key)).toEqual(['t:user', 't:0', 't:1'])
  })

  it('leaves the answers of a running turn to the live view and keeps its question', () => {
    const items = built(
      [said('t', 'hi'), answered('t', [{ type: 'text', text: 'half' }], { status: 'incomplete' })],
      't',
    )
    expect(items.map((item) => item.kind)).toEqual(['user'])
  })

  it('shows a compaction with its figures where it happened', () => {
    const items = built([
      said('t', 'hi'),
      {
        ...at(''),
        type: 'metadata',
        metadata: {
          type: 'compacted',
          method: 'truncated',
          summary: '',
          boundary: 0,
          shortened: [],
          tokensBefore: 900,
          tokensAfter: 100,
        },
      },
      answered('t', [{ type: 'text', text: 'yes' }]),
    ])
    expect(items[1]).toMatchObject({ kind: 'compaction', method: 'truncated', tokensBefore: 900, tokensAfter: 100 })
  })

  it('builds the same thread from any pages', () => {
    const events = [
      said('t', 'hi'),
      answered('t', [{ type: 'toolCall', callId: 'a', toolName: 'read', arguments: {} }]),
      {
        ...at('t'),
        type: 'toolResult',
        callId: 'a',
        toolName: 'read',
        output: 'x',
        isError: false,
        durationMs: 1,
      } as const,
      answered('t', [{ type: 'text', text: 'done' }]),
    ]
    const whole = built(events)
    for (let page = 1; page < events.length; page++) {
      const builder = new ThreadBuilder('s')
      for (let from = 0; from < events.length; from += page) builder.add(events.slice(from, from + page))
      expect(builder.items()).toEqual(whole)
    }
  })
})
