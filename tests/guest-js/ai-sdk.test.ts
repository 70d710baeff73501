import type { UIMessage } from 'ai';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { AgentChatTransport, toUIMessages } from '../../guest-js/ai-sdk.js';
import { AgentError, createSession, currentSession } from '../../guest-js/index.js';
import { mockAgent, type MockAgent, type MockScript, type MockStep } from '../../guest-js/testing.js';
import { Chat, chunksOf, plain } from './chat.js';

let agent: MockAgent | undefined;
afterEach(() => agent?.remove());

function install(script: MockScript): MockAgent {
  agent = mockAgent({ everyMs: 0, ...script });
  return agent;
}

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
    const events = (await (await currentSession())?.history())?.items ?? [];
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
    const events = (await session?.history())?.items ?? [];
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
