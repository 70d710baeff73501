import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { currentSession } from 'tauri-plugin-youyou-agent-api'
import { mockAgent, type MockAgent, type MockScript, type MockStep } from 'tauri-plugin-youyou-agent-api/testing'
import type { Item } from '../src/state/thread'

let agent: MockAgent

/** A window of the app on a scripted agent. A second call is a reload, or a second window. */
async function window() {
  vi.resetModules()
  const [{ chat }, { reloadCatalog }] = await Promise.all([
    import('../src/state/chat'),
    import('../src/state/catalog'),
  ])
  await reloadCatalog()
  await chat.start()
  const view = () => chat.state.get().shown.view.get()
  return {
    chat,
    view,
    rows: () => [...view().settled, ...view().live].map(brief),
    idle: () => vi.waitFor(() => expect(view().turn).toBeNull()),
  }
}

function brief(item: Item): string {
  switch (item.kind) {
    case 'user':
      return `user: ${item.content.map((block) => (block.type === 'text' ? block.text : block.type)).join()}`
    case 'assistant': {
      const text = item.parts.map((part) => (part.kind === 'text' ? part.text : part.kind)).join()
      return `assistant: ${text}${item.interruption ? ` (${item.interruption})` : ''}`
    }
    case 'error':
      return `error: ${item.error.code}`
    default:
      return item.kind
  }
}

const script = (turns: MockScript['turns'], rest: MockScript = {}) => {
  agent = mockAgent({ everyMs: 1, pieceLength: 100, ...rest, ...(turns ? { turns } : {}) })
}
const say = (text: string) => [{ type: 'text' as const, text }]

beforeEach(() => localStorage.removeItem('preferences'))
afterEach(() => {
  agent.remove()
  vi.useRealTimers()
})

describe('a chat', () => {
  it('keeps an error on screen when the news of its turn come late by the session as well', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true })
    // The session's own subscription is the one that hears of both turns.
    const first = new Set<number>()
    let late = false
    script([['One.'], [{ fail: { code: 'PROVIDER_ERROR' } }]], {
      transport: (_, subscription) => {
        if (!late) first.add(subscription)
        return late && first.has(subscription) ? { delayMs: 500 } : 'deliver'
      },
    })
    const { chat, rows } = await window()
    await chat.send(say('First'))
    late = true
    await chat.send(say('Second'))
    const asked = agent.calls.length
    await vi.advanceTimersByTimeAsync(1_000)
    expect(rows()).toEqual(['user: First', 'assistant: One.', 'user: Second', 'error: PROVIDER_ERROR'])
    const read = agent.calls.slice(asked).map(({ command }) => command)
    expect(read).not.toContain('session_history')
  })

  it('creates its session with the first message and shows the answer', async () => {
    script([['Hello.']])
    const { chat, rows } = await window()
    expect(await currentSession()).toBeNull()
    expect(await chat.send(say('Hi'))).toBe(true)
    expect(rows()).toEqual(['user: Hi', 'assistant: Hello.'])
  })

  it('gives a refused message back and shows why', async () => {
    script([[{ refuse: { code: 'INVALID_INPUT' } }]])
    const { chat, rows } = await window()
    expect(await chat.send(say('Hi'))).toBe(false)
    expect(rows()).toEqual([])
    expect(chat.state.get().refusal?.code).toBe('INVALID_INPUT')
  })

  it('goes on after a reload in mid-turn without a gap and without doubles', async () => {
    script([['First half, ', { hold: true }, 'second half.']])
    const first = await window()
    void first.chat.send(say('Hi'))
    await vi.waitFor(() => expect(first.rows()).toContain('assistant: First half, '))
    const reloaded = await window()
    await vi.waitFor(() => expect(reloaded.rows()).toEqual(['user: Hi', 'assistant: First half, ']))
    agent.release()
    await vi.waitFor(() =>
      expect(reloaded.rows()).toEqual(['user: Hi', 'assistant: First half, second half.']),
    )
  })

  it('shows the turn of another window live, with the words that began it', async () => {
    script([['One.'], ['Two, ', { hold: true }, 'three.']])
    const here = await window()
    await here.chat.send(say('First'))
    const there = await currentSession()
    const turn = there?.send('From over there')
    await vi.waitFor(() =>
      expect(here.rows()).toEqual(['user: First', 'assistant: One.', 'user: From over there', 'assistant: Two, ']),
    )
    agent.release()
    await turn?.result()
    await here.idle()
    expect(here.rows().at(-1)).toBe('assistant: Two, three.')
  })

  it('marks what a stop cut and can run it again', async () => {
    script(({ retry }) => (retry ? ['Whole.'] : ['Half', { hold: true }]))
    const { chat, rows, view, idle } = await window()
    void chat.send(say('Hi'))
    await vi.waitFor(() => expect(rows()).toContain('assistant: Half'))
    chat.stop()
    expect(view().turn?.stopping).toBe(true)
    await idle()
    expect(rows()).toEqual(['user: Hi', 'assistant: Half (cancelled)'])
    const turnId = view().settled.at(-1)?.turnId ?? ''
    await chat.retry(turnId)
    expect(rows()).toEqual(['user: Hi', 'assistant: Half (cancelled)', 'assistant: Whole.'])
  })

  it('takes the error away when its turn runs again', async () => {
    script(({ retry }) => (retry ? ['Fine.'] : [{ fail: { code: 'PROVIDER_ERROR' } }]))
    const { chat, rows, view } = await window()
    await chat.send(say('Hi'))
    expect(rows()).toEqual(['user: Hi', 'error: PROVIDER_ERROR'])
    await chat.retry(view().settled.at(-1)?.turnId ?? '')
    expect(rows()).toEqual(['user: Hi', 'assistant: Fine.'])
  })

  it('runs a message again that could not be stored, and says it once', async () => {
    const turns: MockStep[][] = [['One.'], [{ fail: { code: 'STORAGE_ERROR' } }], ['Two.']]
    script(() => turns.shift() ?? [])
    const { chat, rows, view } = await window()
    await chat.send(say('First'))
    await chat.send(say('Second'))
    expect(rows().slice(2)).toEqual(['user: Second', 'error: STORAGE_ERROR'])
    await chat.retry(view().settled.at(-1)?.turnId ?? '')
    const expected = ['user: First', 'assistant: One.', 'user: Second', 'assistant: Two.']
    expect(rows()).toEqual(expected)
    expect((await window()).rows()).toEqual(expected)
  })

  it('stops a compaction, and makes another', async () => {
    script([['One.']], { compactMs: 200 })
    const { chat, rows } = await window()
    await chat.send(say('First'))
    const stop = new AbortController()
    const stopped = chat.compact(stop.signal)
    const asked = () => agent.calls.map(({ command }) => command)
    await vi.waitFor(() => expect(asked()).toContain('compact'), { interval: 1 })
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ code: 'REQUEST_CANCELLED' })
    expect(rows()).toEqual(['user: First', 'assistant: One.'])
    await chat.compact(new AbortController().signal)
    expect(rows().at(-1)).toMatch(/^compaction/)
  })

  it('does not stop a running turn by looking at another chat, nor by writing there', async () => {
    script([['Begun', { hold: true }]], {
      sessions: [{ sessionId: 'old', title: 'Old', events: [{ type: 'userMessage', content: say('Before') }] }],
    })
    const { chat, rows, view } = await window()
    void chat.send(say('Hi'))
    await vi.waitFor(() => expect(rows()).toContain('assistant: Begun'))
    const running = chat.state.get().shown.sessionId
    await chat.show('old')
    expect(rows()).toEqual(['user: Before'])
    expect(await chat.send(say('More'))).toBe(false)
    expect(chat.state.get().elsewhere).toBe(running)
    await chat.show(running)
    expect(rows()).toEqual(['user: Hi', 'assistant: Begun'])
    expect(view().turn).not.toBeNull()
    chat.stop()
  })

  it('opens an old chat only when something is sent to it', async () => {
    script([['Again.']], {
      sessions: [{ sessionId: 'old', title: 'Old', events: [{ type: 'userMessage', content: say('Before') }] }],
    })
    const { chat, rows } = await window()
    await chat.show('old')
    expect(await currentSession()).toBeNull()
    await chat.send(say('More'))
    expect((await currentSession())?.id).toBe('old')
    expect(rows()).toEqual(['user: Before', 'user: More', 'assistant: Again.'])
  })
})
