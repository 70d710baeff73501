import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSession } from 'tauri-plugin-youyou-agent-api'
import { mockAgent, type MockAgent } from 'tauri-plugin-youyou-agent-api/testing'

let agent: MockAgent

afterEach(() => agent.remove())

/** The list of a window, with so many stored sessions; the higher the number, the newer. */
async function list(stored: number) {
  const sessions = Array.from({ length: stored }, (_, number) => ({
    sessionId: `s${number}`,
    title: `Chat ${number}`,
    updatedAt: 1_000 + number,
    events: [{ turnId: 't', type: 'userMessage' as const, content: [{ type: 'text' as const, text: 'Hello' }] }],
  }))
  agent = mockAgent({ sessions, everyMs: 1 })
  vi.resetModules()
  const { sessions: shown } = await import('../src/state/sessions')
  await shown.refresh()
  return { shown, items: () => shown.state.get().items, titles: () => shown.state.get().items.map(({ title }) => title) }
}

/** A turn in a new chat, which is then the newest of the list. */
async function chatAbout(text: string) {
  const session = await createSession({ replace: true })
  await session.send(text).result()
}

describe('the list of sessions', () => {
  it('never outgrows the page that was asked for, however many chats begin', async () => {
    const { shown, items, titles } = await list(60)
    for (const text of ['one', 'two', 'three']) {
      await chatAbout(text)
      await shown.refresh()
    }
    expect(items()).toHaveLength(60)
    expect(titles().at(-1)).toBe('Chat 3')
    await shown.loadMore()
    expect(titles().slice(-3)).toEqual(['Chat 2', 'Chat 1', 'Chat 0'])
  })

  it('keeps older pages that were asked for when newer chats push them down', async () => {
    const { shown, titles } = await list(130)
    await shown.loadMore()
    await chatAbout('newest')
    await shown.refresh()
    expect(titles()).toHaveLength(121)
    expect(new Set(titles()).size).toBe(121)
    await shown.loadMore()
    expect(titles().at(-1)).toBe('Chat 0')
    expect(titles()).toHaveLength(131)
  })

  it('gives the same object again for a session that did not change, so that its row is not drawn anew', async () => {
    const { shown, items } = await list(3)
    const before = items()
    await shown.refresh()
    expect(items().every((one, index) => one === before[index])).toBe(true)
    await shown.rename('s1', 'Another title')
    expect(items().map((one) => before.includes(one))).toEqual([true, false, true])
  })
})
