import {
  AbstractChat,
  readUIMessageStream,
  type ChatState,
  type ChatTransport,
  type UIMessage,
  type UIMessageChunk,
} from 'ai';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { AgentChatTransport, toUIMessages, toUIMessageStream } from '../../guest-js/ai-sdk.js';
import { AgentError, createSession, currentSession, type AgentEvent } from '../../guest-js/index.js';
import { mockAgent, type MockAgent, type MockScript, type MockStep } from '../../guest-js/testing.js';
import { cancelled, completed, event, failed, reasoning, started, text } from './wire.js';

let agent: MockAgent | undefined;
afterEach(() => agent?.remove());

function install(script: MockScript): MockAgent {
  agent = mockAgent({ everyMs: 0, ...script });
  return agent;
}

async function* source(events: AgentEvent[], error?: unknown): AsyncGenerator<AgentEvent> {
  yield* events;
  if (error !== undefined) throw error;
}

async function chunksOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** The SDK's own chat, without any framework around it. */
class Chat extends AbstractChat<UIMessage> {
  constructor(
    messages: UIMessage[] = [],
    onError: (error: Error) => void = () => undefined,
    transport: ChatTransport<UIMessage> = new AgentChatTransport(),
  ) {
    const state: ChatState<UIMessage> = {
      status: 'ready',
      error: undefined,
      messages,
      pushMessage: (message) => {
        state.messages = [...state.messages, message];
      },
      popMessage: () => {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage: (index, message) => {
        state.messages = state.messages.with(index, message);
      },
      snapshot: structuredClone,
    };
    super({ state, transport, onError });
  }
}

/** Messages without what only the SDK's bookkeeping needs. */
function plain(messages: UIMessage[]): unknown {
  return JSON.parse(JSON.stringify(messages.map(({ role, parts }) => ({ role, parts }))));
}

const TOOL_TURN: AgentEvent[] = [
  started(1),
  reasoning('hm', 2),
  text('Let me look.', 3),
  event(4, { type: 'toolCallStart', step: 0, callId: 'a', toolName: 'read', arguments: { path: 'x' } }),
  event(5, { type: 'toolCallStart', step: 0, callId: 'b', toolName: 'read', arguments: {} }),
  event(6, { type: 'toolProgress', callId: 'a', message: 'half' }),
  event(7, { type: 'toolCallEnd', step: 0, callId: 'b', toolName: 'read', output: 'no', durationMs: 1, success: false }),
  event(8, { type: 'toolCallEnd', step: 0, callId: 'a', toolName: 'read', output: 'X', durationMs: 2, success: true }),
  text('It ', 9, 9, 1),
  text('is X.', 10, 10, 1),
  completed(11, 'It is X.'),
];

const TOOL = { dynamic: true, providerExecuted: true };

describe('the stream of a turn', () => {
  test('opens and closes everything in the order the SDK wants', async () => {
    expect(await chunksOf(toUIMessageStream(source(TOOL_TURN)))).toEqual([
      { type: 'start', messageId: 't' },
      { type: 'start-step' },
      { type: 'reasoning-start', id: 'reasoning-2' },
      { type: 'reasoning-delta', id: 'reasoning-2', delta: 'hm' },
      { type: 'reasoning-end', id: 'reasoning-2' },
      { type: 'text-start', id: 'text-3' },
      { type: 'text-delta', id: 'text-3', delta: 'Let me look.' },
      { type: 'text-end', id: 'text-3' },
      { type: 'tool-input-available', toolCallId: 'a', toolName: 'read', input: { path: 'x' }, ...TOOL },
      { type: 'tool-input-available', toolCallId: 'b', toolName: 'read', input: {}, ...TOOL },
      { type: 'tool-output-error', toolCallId: 'b', errorText: 'no', ...TOOL },
      { type: 'tool-output-available', toolCallId: 'a', output: 'X', ...TOOL },
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'text-start', id: 'text-9' },
      { type: 'text-delta', id: 'text-9', delta: 'It ' },
      { type: 'text-delta', id: 'text-9', delta: 'is X.' },
      { type: 'text-end', id: 'text-9' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ]);
  });

  test('is read by the SDK into one message', async () => {
    let message: UIMessage | undefined;
    for await (message of readUIMessageStream({ stream: toUIMessageStream(source(TOOL_TURN)) }));
    expect(message).toMatchObject({
      id: 't',
      role: 'assistant',
      parts: [
        { type: 'step-start' },
        { type: 'reasoning', text: 'hm', state: 'done' },
        { type: 'text', text: 'Let me look.', state: 'done' },
        { type: 'dynamic-tool', toolCallId: 'a', state: 'output-available', input: { path: 'x' }, output: 'X' },
        { type: 'dynamic-tool', toolCallId: 'b', state: 'output-error', errorText: 'no' },
        { type: 'step-start' },
        { type: 'text', text: 'It is X.', state: 'done' },
      ],
    });
  });

  test('of a cancelled turn ends with abort, not with an error', async () => {
    const chunks = await chunksOf(toUIMessageStream(source([started(1), text('ha', 2), cancelled(3)])));
    expect(chunks.slice(-3)).toEqual([{ type: 'text-end', id: 'text-2' }, { type: 'finish-step' }, { type: 'abort' }]);
  });

  test('of a failed turn fails with the very error of the turn', async () => {
    const error = AgentError.from({ code: 'PROVIDER_ERROR', message: 'down', retryable: true, source: 'provider' });
    const stream = toUIMessageStream(source([started(1), text('ha', 2), failed(3)], error));
    const types: string[] = [];
    const reading = (async () => {
      for await (const chunk of stream) types.push(chunk.type);
    })();
    await expect(reading).rejects.toBe(error);
    expect(types).toEqual(['start', 'start-step', 'text-start', 'text-delta']);
  });

  test('when nobody reads it any more only stops listening', async () => {
    const stopped = vi.fn();
    async function* endless(): AsyncGenerator<AgentEvent> {
      try {
        yield started(1);
        for (let sequence = 2; ; sequence += 1) yield text('x', sequence);
      } finally {
        stopped();
      }
    }
    const reader = toUIMessageStream(endless()).getReader();
    await reader.read();
    await reader.cancel();
    expect(stopped).toHaveBeenCalledOnce();
  });
});

describe('a stream that is waiting', () => {
  test('is left at once, however long the next event takes', async () => {
    install({ turns: [['one', { hold: true }, 'two']] });
    const session = await createSession();
    const turn = session.send('hi');
    const reader = toUIMessageStream(turn).getReader();
    for (let type = ''; type !== 'text-delta'; ) type = (await reader.read()).value?.type ?? '';
    const reading = reader.read();
    // The stream comes to wait for the turn.
    await new Promise((resolve) => setTimeout(resolve, 0));
    await reader.cancel();
    expect(await reading).toEqual({ done: true, value: undefined });
    agent?.release();
    expect(await turn.text()).toBe('onetwo');
  });
});

describe('a chat of the SDK on the agent', () => {
  test('streams text and tools, and sends only the newest message', async () => {
    install({
      turns: [['Hello.'], [{ tool: 'read', arguments: { path: 'x' }, output: 'X' }, 'Seen.']],
    });
    const chat = new Chat();
    await chat.sendMessage({ text: 'hi' });
    await chat.sendMessage({ text: 'and x?' });
    expect(chat.status).toBe('ready');
    expect(plain(chat.messages)).toMatchObject([
      { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', parts: [{ type: 'step-start' }, { type: 'text', text: 'Hello.' }] },
      { role: 'user', parts: [{ type: 'text', text: 'and x?' }] },
      {
        role: 'assistant',
        parts: [
          { type: 'step-start' },
          { type: 'dynamic-tool', toolName: 'read', state: 'output-available', output: 'X' },
          { type: 'step-start' },
          { type: 'text', text: 'Seen.' },
        ],
      },
    ]);
    const sent = agent?.calls.filter(({ command }) => command === 'send_message').map(({ args }) => args['content']);
    expect(sent).toEqual([[{ type: 'text', text: 'hi' }], [{ type: 'text', text: 'and x?' }]]);
    expect(agent?.calls.filter(({ command }) => command === 'create_session')).toHaveLength(1);
  });

  test('stops the turn, keeps what was shown and is ready again', async () => {
    const mock = install({ turns: [['half', { hold: true }, 'never']] });
    const chat = new Chat();
    const sending = chat.sendMessage({ text: 'hi' });
    await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('half'));
    await chat.stop();
    await sending;
    await vi.waitFor(() => expect(chat.status).toBe('ready'));
    expect(mock.calls.filter(({ command }) => command === 'cancel')).toHaveLength(1);
    expect(plain(chat.messages)).toMatchObject([{}, { parts: [{}, { type: 'text', text: 'half' }] }]);
    await vi.waitFor(async () => expect((await (await currentSession())?.info())?.state).toBe('idle'));
  });

  test('shows a failure with its class and code', async () => {
    install({ turns: [['ha', { fail: { code: 'PROVIDER_ERROR', message: 'down', retryAfterMs: 9 } }]] });
    const onError = vi.fn();
    const chat = new Chat([], onError);
    await chat.sendMessage({ text: 'hi' });
    expect(chat.status).toBe('error');
    expect(chat.error).toBeInstanceOf(AgentError);
    expect(chat.error).toMatchObject({ code: 'PROVIDER_ERROR', message: 'down', retryAfterMs: 9 });
    expect(onError).toHaveBeenCalledExactlyOnceWith(chat.error);
  });

  test('shows a refusal in the same way, and the next message is accepted', async () => {
    const turns: MockStep[][] = [[{ refuse: { code: 'CONTENT_NOT_SUPPORTED' } }], ['fine']];
    install({ turns: () => turns.shift() ?? [] });
    const chat = new Chat();
    await chat.sendMessage({ text: 'hi' });
    expect(chat.error).toMatchObject({ code: 'CONTENT_NOT_SUPPORTED' });
    await chat.sendMessage({ text: 'hi again' });
    expect({ status: chat.status, error: chat.error }).toEqual({ status: 'ready', error: undefined });
  });

  test('sends what follows a stop once the running tool has ended', async () => {
    const mock = install({ turns: [[{ tool: 'slow', durationMs: 300, output: 'done' }, 'never'], ['second']] });
    const chat = new Chat();
    const sending = chat.sendMessage({ text: 'one' });
    await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('slow'), { interval: 1 });
    await chat.stop();
    await sending;
    await chat.sendMessage({ text: 'two' });
    expect({ status: chat.status, error: chat.error }).toEqual({ status: 'ready', error: undefined });
    expect(JSON.stringify(chat.lastMessage)).toContain('second');
    expect(mock.calls.filter(({ command }) => command === 'send_message')).toHaveLength(2);
  });

  test('sends a refused message again when it is regenerated, and runs no other in its place', async () => {
    const turns: MockStep[][] = [['half', { hold: true }, 'never'], [{ refuse: { code: 'CONTENT_NOT_SUPPORTED' } }], ['to two']];
    const mock = install({ turns: () => turns.shift() ?? [] });
    const chat = new Chat();
    const sending = chat.sendMessage({ text: 'one' });
    await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('half'));
    await chat.stop();
    await sending;
    await chat.sendMessage({ text: 'two' });
    expect(chat.error).toMatchObject({ code: 'CONTENT_NOT_SUPPORTED' });
    await chat.regenerate();
    expect({ status: chat.status, error: chat.error }).toEqual({ status: 'ready', error: undefined });
    expect(JSON.stringify(chat.lastMessage)).toContain('to two');
    const sent = mock.calls.filter(({ command }) => /^(send_message|retry_turn)$/.test(command));
    expect(sent.map(({ args }) => args['content'])).toEqual([
      [{ type: 'text', text: 'one' }],
      [{ type: 'text', text: 'two' }],
      [{ type: 'text', text: 'two' }],
    ]);
  });

  test('runs a message that could not be stored, and not the one before, when it is regenerated', async () => {
    const turns: MockStep[][] = [
      [{ fail: { code: 'PROVIDER_ERROR' } }],
      [{ fail: { code: 'STORAGE_ERROR' } }],
      [{ fail: { code: 'HOOK_ABORTED' } }],
      ['to two'],
    ];
    const asked: string[] = [];
    install({
      turns: ({ text }) => {
        asked.push(text);
        return turns.shift() ?? [];
      },
    });
    const chat = new Chat();
    await chat.sendMessage({ text: 'one' });
    await chat.sendMessage({ text: 'two' });
    expect(chat.error).toMatchObject({ code: 'STORAGE_ERROR' });
    await chat.regenerate();
    expect(chat.error).toMatchObject({ code: 'HOOK_ABORTED' });
    await chat.regenerate();
    expect({ status: chat.status, asked }).toEqual({ status: 'ready', asked: ['one', 'two', 'two', 'two'] });
    const { events } = (await (await currentSession())?.history()) ?? { events: [] };
    const said = events.flatMap((event) => (event.type === 'userMessage' ? event.content : []));
    expect(said).toEqual([{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }]);
  });

  test('refuses to regenerate an answer that is not the newest', async () => {
    const mock = install({ turns: [['to one'], ['to two']] });
    const chat = new Chat();
    await chat.sendMessage({ text: 'one' });
    const first = chat.lastMessage?.id ?? '';
    await chat.sendMessage({ text: 'two' });
    await chat.regenerate({ messageId: first });
    expect(chat.error).toMatchObject({ code: 'INVALID_INPUT' });
    expect(mock.calls.some(({ command }) => command === 'retry_turn')).toBe(false);
  });

  test('regenerates by running the last message again', async () => {
    const mock = install({ turns: [[{ fail: { code: 'PROVIDER_ERROR' } }], ['second try']] });
    const chat = new Chat();
    await chat.sendMessage({ text: 'hi' });
    await chat.regenerate();
    expect(plain(chat.messages)).toMatchObject([{ role: 'user' }, { role: 'assistant', parts: [{}, { text: 'second try' }] }]);
    expect(mock.calls.filter(({ command }) => /^(send_message|retry_turn)$/.test(command)).map(({ command }) => command))
      .toEqual(['send_message', 'retry_turn']);
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
    const stored = toUIMessages(history?.events ?? [], { runningTurnId: info?.turnId });
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

  describe('that is resumed', () => {
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
  });

  test('stopped twice waits for the tool of the first turn, too', async () => {
    install({ turns: [[{ tool: 'slow', durationMs: 300, output: 'done' }, 'never'], ['second']] });
    const chat = new Chat();
    const first = chat.sendMessage({ text: 'one' });
    await vi.waitFor(() => expect(JSON.stringify(chat.lastMessage)).toContain('slow'), { interval: 1 });
    await chat.stop();
    await first;
    const second = chat.sendMessage({ text: 'two' });
    await chat.stop();
    await second;
    await chat.sendMessage({ text: 'three' });
    expect({ status: chat.status, error: chat.error }).toEqual({ status: 'ready', error: undefined });
    expect(JSON.stringify(chat.lastMessage)).toContain('second');
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

  test('hands images, text files and options over, and refuses what the agent cannot take', async () => {
    const mock = install({});
    const transport = new AgentChatTransport({ sendOptions: { modelId: 'mock-1', temperature: 1 } });
    const file = (mediaType: string, url: string): UIMessage => ({
      id: 'u',
      role: 'user',
      parts: [
        { type: 'text', text: 'look' },
        { type: 'file', mediaType, url, filename: 'f' },
      ],
    });
    const send = (message: UIMessage, body?: object): Promise<unknown> =>
      transport
        .sendMessages({
          trigger: 'submit-message', chatId: 'c', messageId: undefined, messages: [message], abortSignal: undefined,
          ...(body ? { body } : {}),
        })
        .then(chunksOf);
    await send(file('image/png', 'data:image/png;base64,AAAA'), { temperature: 0, foreign: true });
    await send(file('text/markdown', `data:text/markdown;base64,${Buffer.from('# 你好').toString('base64')}`));
    await send(file('application/json', 'data:application/json,%7B%7D'));
    const sent = mock.calls.filter(({ command }) => command === 'send_message');
    const [words] = [{ type: 'text', text: 'look' }];
    expect(sent.map(({ args }) => args['content'])).toEqual([
      [words, { type: 'image', mediaType: 'image/png', data: 'data:image/png;base64,AAAA' }],
      [words, { type: 'file', name: 'f', text: '# 你好' }],
      [words, { type: 'file', name: 'f', text: '{}' }],
    ]);
    expect(sent[0]?.args['options']).toEqual({ modelId: 'mock-1', temperature: 0 });
    for (const refused of [
      file('image/png', 'https://example.com/a.png'),
      file('application/pdf', 'data:application/pdf;base64,AAAA'),
      file('text/plain', 'data:text/plain;base64,/w=='),
      { id: 'a', role: 'assistant', parts: [] } satisfies UIMessage,
    ]) {
      await expect(send(refused)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(mock.calls.filter(({ command }) => command === 'send_message')).toHaveLength(3);
  });
});

describe('the session of a chat', () => {
  const message: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
  const options = {
    trigger: 'submit-message' as const, messageId: undefined, messages: [message], abortSignal: undefined,
  };

  test('is chosen by the chat id where the app says how', async () => {
    const mock = install({});
    const session = await createSession();
    const choose = vi.fn(() => Promise.resolve(session));
    await chunksOf(await new AgentChatTransport({ session: choose }).sendMessages({ ...options, chatId: 'mine' }));
    expect(choose).toHaveBeenCalledExactlyOnceWith('mine');
    expect(mock.calls.filter(({ command }) => command === 'create_session')).toHaveLength(1);
  });

  test('is opened once when two messages come at the same moment', async () => {
    const mock = install({});
    const transport = new AgentChatTransport();
    const streams = await Promise.all([
      transport.sendMessages({ ...options, chatId: 'c' }),
      transport.sendMessages({ ...options, chatId: 'c' }),
    ]);
    const [first, second] = await Promise.allSettled(streams.map(chunksOf));
    expect(first?.status).toBe('fulfilled');
    // The agent runs one turn at a time.
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'SESSION_BUSY' } });
    expect(mock.calls.filter(({ command }) => command === 'create_session')).toHaveLength(1);
  });
});

describe('stored events', () => {
  test('become the messages that were streamed', async () => {
    install({
      turns: [
        [
          { reasoning: 'hm' },
          'Looking.',
          { tools: [{ tool: 'a', output: '1' }, { tool: 'b', output: 'no', error: 'TOOL_TIMEOUT' }] },
          'Done.',
        ],
      ],
    });
    const chat = new Chat();
    await chat.sendMessage({ text: 'hi' });
    const session = await currentSession();
    const { events } = (await session?.history()) ?? { events: [] };
    const stored = toUIMessages(events);
    const withoutPlace = (messages: UIMessage[]): unknown =>
      JSON.parse(JSON.stringify(plain(messages), (key, value: unknown) => (['id', 'state'].includes(key) ? undefined : value)));
    expect(withoutPlace(stored)).toEqual(withoutPlace(chat.messages));
    expect(stored.at(-1)?.id).toBe(chat.messages.at(-1)?.id);
  });

  test('keep images and files, the arguments really used, and calls without a result', () => {
    const envelope = { timestamp: 1, turnId: 't' };
    const messages = toUIMessages([
      {
        ...envelope, index: 0, type: 'userMessage',
        content: [
          { type: 'image', mediaType: 'image/png', data: 'AAAA' },
          { type: 'file', name: 'a.txt', text: 'ä%' },
        ],
      },
      {
        ...envelope, index: 1, type: 'assistantMessage', status: 'incomplete', interruption: 'processEnded',
        providerId: 'p', modelId: 'm',
        parts: [
          { type: 'reasoning', text: '', providerData: 'sig' },
          { type: 'toolCall', callId: 'c', toolName: 'run', arguments: { a: 1 } },
          { type: 'toolCall', callId: 'd', toolName: 'run', arguments: {} },
        ],
      },
      { ...envelope, index: 2, type: 'toolCall', callId: 'c', toolName: 'run', arguments: { a: 2 } },
      { ...envelope, index: 3, type: 'toolResult', callId: 'c', toolName: 'run', output: 'ok', isError: false, durationMs: 1 },
      { ...envelope, index: 4, type: 'metadata', metadata: { type: 'memoryCheckpoint', through: 3 } },
    ]);
    expect(messages).toEqual([
      {
        id: 'user-0',
        role: 'user',
        parts: [
          { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
          { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;charset=utf-8,%C3%A4%25' },
        ],
      },
      {
        id: 't',
        role: 'assistant',
        parts: [
          { type: 'step-start' },
          {
            type: 'dynamic-tool', toolCallId: 'c', toolName: 'run', providerExecuted: true,
            state: 'output-available', input: { a: 2 }, output: 'ok',
          },
          {
            type: 'dynamic-tool', toolCallId: 'd', toolName: 'run', providerExecuted: true,
            state: 'output-error', input: {}, errorText: 'The call has no stored result.',
          },
        ],
      },
    ]);
  });
});
