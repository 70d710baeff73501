import { afterEach, describe, expect, test, vi } from 'vitest';
import { AgentChatTransport, toUIMessages } from '../../guest-js/ai-sdk.js';
import { createSession, currentSession } from '../../guest-js/index.js';
import { mockAgent, type MockAgent, type MockScript, type MockStep } from '../../guest-js/testing.js';
import { Chat, chunksOf, plain } from './chat.js';

let agent: MockAgent | undefined;
afterEach(() => agent?.remove());

function install(script: MockScript): MockAgent {
  agent = mockAgent({ everyMs: 0, ...script });
  return agent;
}

describe('a chat that is resumed', () => {
  async function running(steps: MockStep[]): Promise<MockAgent> {
    const mock = install({ turns: [steps, ['second']] });
    const session = await createSession();
    session.send('count');
    await vi.waitFor(async () => expect((await session.info()).lastSequence).toBeGreaterThan(1));
    return mock;
  }
  const shows = (chat: Chat, text: string): Promise<void> =>
    vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain(text), { interval: 1 });
  const calls = (name: string): number => (agent?.calls ?? []).filter(({ command }) => command === name).length;

  test('twice stops no turn, and leaves one subscription', async () => {
    const mock = await running(['one ', { hold: true }, 'two']);
    const before = mock.subscriptions;
    // `useChat` asks the transport of its newest rendering.
    const chat = new Chat([], undefined, {
      sendMessages: (options) => new AgentChatTransport().sendMessages(options),
      reconnectToStream: (options) => new AgentChatTransport().reconnectToStream(options),
    });
    let resuming = chat.resumeStream();
    for (let n = 1; n <= 5; n += 1) {
      await shows(chat, 'one ');
      await vi.waitFor(() => expect(calls('attach')).toBe(n));
      resuming = chat.resumeStream();
    }
    await vi.waitFor(() => expect(mock.subscriptions - before).toBe(1));
    mock.release();
    await resuming;
    expect(calls('cancel')).toBe(0);
    expect(plain(chat.messages)).toMatchObject([{ role: 'assistant', parts: [{}, { text: 'one two', state: 'done' }] }]);
  });

  test('as React does it in strict mode, two chats at once, stops no turn', async () => {
    const mock = await running(['one ', { hold: true }, 'two']);
    const transport = new AgentChatTransport();
    const chats = [1, 2].map(() => new Chat([], undefined, transport));
    for (const chat of chats) void chat.resumeStream();
    for (const chat of chats) void chat.stop();
    const resuming = chats.map((chat) => chat.resumeStream());
    await Promise.all(chats.map((chat) => shows(chat, 'one ')));
    mock.release();
    await Promise.all(resuming);
    expect(calls('cancel')).toBe(0);
    for (const chat of chats) expect(JSON.stringify(chat.lastMessage)).toContain('one two');
  });

  test.each(['send', 'regenerate'])('and stopped takes the next %s once its tool has ended', async (next) => {
    await running([{ tool: 'slow', durationMs: 300, output: 'done' }, 'never']);
    const chat = new Chat();
    const resuming = chat.resumeStream();
    await shows(chat, 'slow');
    await chat.stop();
    await resuming;
    await (next === 'send' ? chat.sendMessage({ text: 'two' }) : chat.regenerate());
    expect({ status: chat.status, error: chat.error }).toEqual({ status: 'ready', error: undefined });
    expect(JSON.stringify(chat.lastMessage)).toContain('second');
  });

  test('and given up before anything was asked stops the turn all the same', async () => {
    await running(['one', { hold: true }]);
    const stopped = AbortSignal.abort();
    const stream = await new AgentChatTransport().reconnectToStream({ chatId: 'given up', abortSignal: stopped });
    expect((await chunksOf(stream ?? new ReadableStream())).at(-1)).toEqual({ type: 'abort' });
  });

  // F4
  test('resumes a running turn after a reload, whole and once', async () => {
    const mock = install({ turns: [['one ', { hold: true }, 'two']], pieceLength: 2 });
    const before = await createSession();
    before.send('count');
    await vi.waitFor(async () => expect((await before.info()).lastSequence).toBe(3));
    mock.reload();
    const session = await currentSession();
    const info = await session?.info();
    const history = await session?.history();
    const stored = toUIMessages(history?.items ?? [], { runningTurnId: info?.turnId });
    const chat = new Chat(stored);
    const resuming = chat.resumeStream();
    await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('one '));
    mock.release();
    await resuming;
    expect(plain(chat.messages)).toMatchObject([
      { role: 'user', parts: [{ type: 'text', text: 'count' }] },
      { role: 'assistant', parts: [{ type: 'step-start' }, { type: 'text', text: 'one two', state: 'done' }] },
    ]);
  });

  test.each(['while it attaches', 'while it streams'])('stops a resumed turn %s', async (when) => {
    const mock = install({ turns: [['one ', { hold: true }, 'two']] });
    const session = await createSession();
    const turn = session.send('count');
    const chat = new Chat();
    const resuming = chat.resumeStream();
    if (when === 'while it streams') {
      await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('one '));
    }
    await chat.stop();
    await resuming;
    expect((await turn.result()).status).toBe('cancelled');
    expect(chat.status).toBe('ready');
    expect(mock.calls.filter(({ command }) => command === 'cancel')).toHaveLength(1);
  });

  test('has nothing to resume when no turn runs, and opens no session to find out', async () => {
    const mock = install({});
    expect(await new AgentChatTransport().reconnectToStream({ chatId: 'c' })).toBeNull();
    expect(mock.calls.map(({ command }) => command)).toEqual(['current_session']);
    const session = await createSession();
    expect(await new AgentChatTransport({ session }).reconnectToStream({ chatId: 'c' })).toBeNull();
  });
});
