import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Channel, invoke } from '@tauri-apps/api/core';
import {
  createSession,
  currentSession,
  deleteSession,
  findSessions,
  fullHistory,
  listModels,
  listSessions,
  renameSession,
  resumeSession,
  sessionHistory,
  type AgentError,
  type AgentEvent,
  type Turn,
} from '../../guest-js/index.js';
import { mockAgent, type MockAgent, type MockScript, type MockSession, type MockStep } from '../../guest-js/testing.js';

let agent: MockAgent;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  agent.remove();
  vi.useRealTimers();
});

function install(script: MockScript = {}): MockAgent {
  agent = mockAgent(script);
  return agent;
}

function recorded(turn: AsyncIterable<AgentEvent>): AgentEvent[] {
  const events: AgentEvent[] = [];
  void (async () => {
    try {
      for await (const item of turn) events.push(item);
    } catch {
      // The test looks at the result.
    }
  })();
  return events;
}

describe('a scripted turn', () => {
  test('takes the time the script says and sends the events of a real one', async () => {
    install({
      turns: [
        [
          { reasoning: 'hmmm', pieceLength: 2, everyMs: 10 },
          { delayMs: 100 },
          { retry: { code: 'PROVIDER_ERROR' }, delayMs: 50 },
          { tool: 'read', arguments: { path: 'x' }, output: 'X', durationMs: 300, progress: ['half'] },
          { compacted: { tokensBefore: 9, tokensAfter: 3, messagesRemoved: 1 } },
          { warning: 'careful' },
          { text: '你好 😀', pieceLength: 3, everyMs: 5 },
        ],
      ],
    });
    const session = await createSession();
    const turn = session.send('go');
    const events = recorded(turn);
    await vi.advanceTimersByTimeAsync(460);
    expect(events.map(({ type }) => type)).toEqual([
      'turnStarted', 'reasoningDelta', 'reasoningDelta', 'providerRetry', 'toolCallStart', 'toolProgress',
    ]);
    await vi.advanceTimersByTimeAsync(200);
    expect(events.slice(6).map(({ type }) => type)).toEqual([
      'toolCallEnd', 'contextCompacted', 'warning', 'textDelta', 'textDelta', 'turnComplete',
    ]);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(await turn.result()).toMatchObject({
      text: '你好 😀', reasoning: 'hmmm', toolCalls: [{ toolName: 'read', state: 'done', output: 'X', progress: 'half' }],
    });
    expect(agent.openChannels).toBe(0);
  });

  test('is what the list says, the last one again and again, or what the function answers', async () => {
    install({ turns: [['one'], ['two']], everyMs: 0 });
    const session = await createSession();
    const texts: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      const turn = session.send('go');
      await vi.advanceTimersByTimeAsync(5);
      texts.push(await turn.text());
    }
    expect(texts).toEqual(['one', 'two', 'two']);
    agent.remove();
    install({ turns: ({ text, turn }) => [`${turn}: ${text}`], everyMs: 0 });
    const turn = (await createSession()).send('go');
    await vi.advanceTimersByTimeAsync(5);
    expect(await turn.text()).toBe('0: go');
  });

  test('that the model stopped says why, in its events, its result and the history', async () => {
    install({ turns: [['half', { stop: 'length' }, 'never'], ['whole']], everyMs: 0 });
    const session = await createSession();
    const run = async (): Promise<unknown> => {
      const turn = session.send('go');
      await vi.advanceTimersByTimeAsync(5);
      return turn.result();
    };
    expect(await run()).toMatchObject({ status: 'completed', isWhole: false, stopReason: 'length', text: 'half' });
    expect(await run()).toMatchObject({ status: 'completed', isWhole: true, stopReason: 'endTurn', text: 'whole' });
    const { items } = await session.history();
    expect(items.filter(({ type }) => type === 'assistantMessage')).toMatchObject([
      { status: 'incomplete', stopReason: 'length' },
      { status: 'complete', stopReason: 'endTurn' },
    ]);
  });

  test('that shows nothing sends heartbeats to a page that acknowledges, and only while it runs', async () => {
    const beats: [number, number][] = [];
    install({
      turns: [['a', { delayMs: 2_500 }, 'b']],
      everyMs: 0,
      transport: (message, subscription) => {
        if (message.type === 'heartbeat') beats.push([subscription, message.sequence]);
        return 'deliver';
      },
    });
    const session = await createSession();
    const silent = Promise.all([1, 2].map(() => invoke('plugin:youyou-agent|attach', { sessionId: session.id, onEvent: new Channel() })));
    const turn = session.send('go');
    await vi.advanceTimersByTimeAsync(3_000);
    await silent;
    expect((await turn.result()).text).toBe('ab');
    expect(beats).toEqual([[3, 2], [3, 2]]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(beats).toHaveLength(2);
    expect(agent.calls.filter(({ command }) => command === 'attach')).toHaveLength(2);
  });

  // X7
  test('belongs to its request: repeated it is the same turn, with other content it is refused', async () => {
    install({ turns: [['a', { hold: true }]], everyMs: 0 });
    const { id: sessionId } = await createSession();
    const send = (content: string, requestId = 'r'): Promise<unknown> =>
      invoke('plugin:youyou-agent|send_message', { sessionId, content, options: null, requestId, onEvent: new Channel() });
    const first = await send('one');
    expect(await send('one')).toMatchObject({ turnId: (first as { turnId: string }).turnId });
    await expect(send('two')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(send('two', 'x'.repeat(129))).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  test('stops on cancel at once, but waits for a running tool', async () => {
    install({ turns: [['half', { hold: true }], [{ tool: 'slow', durationMs: 1_000, output: 'done' }, 'never']], everyMs: 0 });
    const session = await createSession();
    const first = session.send('go');
    await vi.advanceTimersByTimeAsync(5);
    await first.cancel();
    expect(await first.result()).toMatchObject({ status: 'cancelled', text: 'half' });
    const second = session.send('go');
    await vi.advanceTimersByTimeAsync(500);
    await second.cancel();
    expect((await session.info()).state).toBe('cancelling');
    await vi.advanceTimersByTimeAsync(500);
    expect(await second.result()).toMatchObject({ status: 'cancelled', text: '', toolCalls: [{ output: 'done' }] });
  });

  test('that is cancelled before it is accepted is cancelled as soon as it starts', async () => {
    install({ turns: [['never']], latencyMs: 100 });
    const creating = createSession();
    await vi.advanceTimersByTimeAsync(100);
    const turn = (await creating).send('go');
    const cancelling = turn.cancel();
    await vi.advanceTimersByTimeAsync(400);
    await cancelling;
    expect(await turn.result()).toMatchObject({ status: 'cancelled', text: '' });
  });

  test.each([
    ['STORAGE_ERROR', true, 'storage'],
    ['HOOK_ABORTED', false, 'plugin'],
    ['COMPACT_ERROR', false, 'agent'],
  ] as const)('that fails with %s is retryable and has a source as in the agent', async (code, retryable, source) => {
    install({ turns: [[{ fail: { code } }]], everyMs: 0 });
    const turn = (await createSession()).send('hi');
    await Promise.all([
      expect(turn.result()).rejects.toMatchObject({ code, retryable, source }),
      vi.advanceTimersByTimeAsync(5),
    ]);
  });

  test('that fails or is refused does so with the error of the script', async () => {
    install({ turns: ({ text }) => (text === 'no' ? [{ refuse: { code: 'HOOK_ABORTED', message: 'not you' } }] : ['ha', { fail: { code: 'PROVIDER_ERROR' } }]), everyMs: 0 });
    const session = await createSession();
    const failing = session.send('go');
    const events = recorded(failing);
    await vi.advanceTimersByTimeAsync(5);
    await expect(failing.result()).rejects.toMatchObject({ code: 'PROVIDER_ERROR', retryable: true, source: 'provider' });
    expect(events.map(({ type }) => type)).toEqual(['turnStarted', 'textDelta', 'error', 'turnComplete']);
    await expect(session.send('no').result()).rejects.toMatchObject({ code: 'HOOK_ABORTED', message: 'not you' });
  });

  test('is refused while another runs, without content, with an unknown model or skill', async () => {
    const skill = { name: 'explain', displayName: 'Explain', description: '', requiredTools: [], allowImplicitInvocation: false };
    install({ turns: [[{ hold: true }]], skills: [skill] });
    const session = await createSession();
    const refusal = (turn: { result(): Promise<unknown> }): Promise<unknown> => turn.result().catch((error: { code: string }) => error.code);
    expect(await refusal(session.send('  '))).toBe('INVALID_INPUT');
    expect(await refusal(session.send('hi', { modelId: 'nope' }))).toBe('MODEL_NOT_SUPPORTED');
    expect(await refusal(session.send('/nope x'))).toBe('SKILL_NOT_FOUND');
    session.send('/explain x');
    expect(await refusal(session.send('hi'))).toBe('SESSION_BUSY');
  });
});

describe('sessions', () => {
  const stored: MockSession[] = [
    {
      sessionId: 'old-1', title: 'Holiday', updatedAt: 1_000,
      events: [
        { type: 'userMessage', content: [{ type: 'image', mediaType: 'image/png', data: 'AAAA' }] },
        { type: 'assistantMessage', parts: [{ type: 'text', text: 'A beach.' }], status: 'complete', providerId: 'p', modelId: 'm' },
      ],
    },
    { sessionId: 'old-2', title: 'Work', updatedAt: 2_000, events: [{ type: 'userMessage', content: [{ type: 'text', text: 'hi' }] }] },
  ];

  test('are listed, found, renamed, resumed and deleted', async () => {
    install({ sessions: stored });
    const first = await listSessions({ limit: 1 });
    expect(first).toMatchObject({ items: [{ sessionId: 'old-2', messageCount: 1 }], nextCursor: 'old-2' });
    expect(await listSessions({ limit: 1, cursor: 'old-2' })).toMatchObject({ items: [{ sessionId: 'old-1' }] });
    expect((await findSessions('old-')).map(({ title }) => title)).toEqual(['Work', 'Holiday']);
    expect((await findSessions('olid')).map(({ title }) => title)).toEqual(['Holiday']);
    expect(await findSessions(' ')).toEqual([]);
    await renameSession('old-1', 'Beach');
    const session = await resumeSession('old-1');
    expect(await session.info()).toMatchObject({ title: 'Beach', messageCount: 2, state: 'idle' });
    await expect(deleteSession('old-1')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    await expect(resumeSession('old-2')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    await resumeSession('old-2', { replace: true });
    await deleteSession('old-1');
    await expect(sessionHistory('old-1')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });

  test('have a history in pages, without image data unless it is wanted', async () => {
    install({ sessions: stored });
    const page = await sessionHistory('old-1', { limit: 1 });
    expect(page).toMatchObject({ items: [{ index: 0, content: [{ data: '' }] }], nextCursor: '1' });
    expect(await sessionHistory('old-1', { cursor: page.nextCursor })).toMatchObject({ items: [{ index: 1 }], unreadable: 0 });
    expect((await fullHistory('old-1')).items.map(({ index }) => index)).toEqual([0, 1]);
    expect(await sessionHistory('old-1', { from: 1 })).toMatchObject({ items: [{ index: 1 }] });
    expect(await sessionHistory('old-1', { withImages: true })).toMatchObject({ items: [{ content: [{ data: 'AAAA' }] }, {}] });
  });

  test('keep what was said, and a retry does not store the message twice', async () => {
    install({ turns: [[{ fail: { code: 'PROVIDER_ERROR' } }], [{ tool: 'read', output: 'X' }, 'ok']], everyMs: 0 });
    const session = await createSession();
    session.send('look');
    await vi.advanceTimersByTimeAsync(5);
    const turn = session.retry();
    await vi.advanceTimersByTimeAsync(5);
    await turn.result();
    const { items: events } = await session.history();
    expect(events.map(({ type }) => type)).toEqual([
      'userMessage', 'metadata', 'assistantMessage', 'toolCall', 'toolResult', 'assistantMessage',
    ]);
    await expect(session.retry().result()).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect((await session.info()).title).toBe('look');
    await session.close();
    expect(await currentSession()).toBeNull();
    expect((await listSessions()).items).toMatchObject([{ title: 'look', messageCount: 3 }]);
  });

  test('run a message again that failed before it was stored, and store it then', async () => {
    const turns: MockStep[][] = [['fine'], [{ fail: { code: 'STORAGE_ERROR' } }], ['ok'], []];
    install({ turns: () => turns.shift() ?? [], everyMs: 0 });
    const session = await createSession();
    const run = async (turn: Turn): Promise<string> => {
      await vi.advanceTimersByTimeAsync(5);
      return turn.text().catch((error: AgentError) => error.code);
    };
    expect(await run(session.send('one'))).toBe('fine');
    expect(await run(session.send('two'))).toBe('STORAGE_ERROR');
    expect((await session.history()).items).toHaveLength(2);
    expect(await run(session.retry())).toBe('ok');
    expect((await session.history()).items).toMatchObject([{}, {}, { content: [{ text: 'two' }] }, {}]);
    expect(await run(session.send('nothing said'))).toBe('');
    expect(await run(session.retry())).toBe('INVALID_INPUT');
  });

  test('keep a message once, whatever its retries fail with, and forget an unstored one with a close', async () => {
    const turns: MockStep[][] = [
      [{ fail: { code: 'PROVIDER_ERROR' } }],
      [{ fail: { code: 'HOOK_ABORTED' } }],
      ['ok'],
      [{ fail: { code: 'STORAGE_ERROR' } }],
    ];
    install({ turns: () => turns.shift() ?? [], everyMs: 0 });
    const session = await createSession();
    const end = async (turn: Turn): Promise<void> => {
      await Promise.all([turn.result().catch(() => undefined), vi.advanceTimersByTimeAsync(5)]);
    };
    await end(session.send('one'));
    await end(session.retry());
    await end(session.retry());
    await end(session.send('lost'));
    const { items: events } = await session.history();
    expect(events.map(({ type }) => type)).toEqual(['userMessage', 'metadata', 'assistantMessage']);
    await session.close();
    const again = await resumeSession(session.id);
    await expect(again.retry().result()).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  test('are not renamed to nothing, and take no message while they close', async () => {
    install({ turns: [['a', { hold: true }]], everyMs: 0 });
    const session = await createSession();
    const turn = session.send('hi');
    let next: Promise<unknown> = Promise.resolve();
    turn.on('turnCancelled', () => {
      next = session.send('more').result();
      next.catch(() => undefined);
    });
    await vi.advanceTimersByTimeAsync(5);
    await expect(renameSession(session.id, ' \n ')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await session.close();
    await expect(next).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });

  test('are compacted in their time, which can be cancelled, and are smaller then', async () => {
    install({ turns: [['long '.repeat(500)]], everyMs: 0, compactMs: 100 });
    const session = await createSession();
    await Promise.all([session.send('hi').result(), vi.advanceTimersByTimeAsync(5)]);
    const before = (await session.info()).contextTokens;
    const stop = new AbortController();
    const cancelled = session.compact({ signal: stop.signal });
    await vi.advanceTimersByTimeAsync(50);
    expect((await session.info()).state).toBe('compacting');
    await expect(session.send('more').result()).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    stop.abort();
    await expect(cancelled).rejects.toMatchObject({ code: 'REQUEST_CANCELLED', retryable: true });
    expect(await session.info()).toMatchObject({ state: 'idle', contextTokens: before });
    const [outcome] = await Promise.all([session.compact(), vi.advanceTimersByTimeAsync(100)]);
    expect(await session.info()).toMatchObject({ state: 'idle', contextTokens: outcome.tokensAfter });
    expect((await session.history()).items.at(-1)).toMatchObject({ metadata: { type: 'compacted' } });
  });

  test('without any message leave nothing behind', async () => {
    install();
    const session = await createSession();
    await session.close();
    expect((await listSessions()).items).toEqual([]);
    await expect(sessionHistory(session.id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });
});

describe('the page', () => {
  test('reaches the app\'s own commands, and commands can be made to fail', async () => {
    install({
      otherCommands: (command, args) => ({ command, args }),
      failCommand: (command) => (command === 'list_models' ? 'Command list_models not allowed by ACL' : undefined),
    });
    expect(await invoke('get_settings', { a: 1 })).toEqual({ command: 'get_settings', args: { a: 1 } });
    await expect(listModels()).rejects.toMatchObject({ code: 'IPC_DENIED' });
    expect(agent.calls.map(({ command }) => command)).toEqual(['get_settings', 'list_models']);
  });

  test('is as it was when the mock is removed', async () => {
    const before = Object.keys(globalThis);
    install();
    await createSession();
    agent.remove();
    expect(Object.keys(globalThis)).toEqual(before);
  });

  test('hears of the end of the turn that runs when the mock is removed', async () => {
    install({ turns: [['a', { hold: true }]], everyMs: 0 });
    const session = await createSession();
    const turn = session.send('hi');
    await vi.advanceTimersByTimeAsync(5);
    agent.remove();
    await vi.advanceTimersByTimeAsync(0);
    expect(await turn.result()).toMatchObject({ status: 'cancelled', text: 'a' });
    expect(vi.getTimerCount()).toBe(0);
    expect(agent.openChannels).toBe(0);
  });

  test.each(['close', 'remove'])('hears the end of a turn right after its start, by %s', async (how) => {
    install({ turns: [['a', { hold: true }]], everyMs: 0 });
    const session = await createSession();
    const turn = session.send('hi');
    const types: string[] = [];
    turn.on('event', ({ type }) => types.push(type));
    await Promise.resolve();
    if (how === 'close') void session.close();
    else agent.remove();
    await vi.advanceTimersByTimeAsync(1);
    expect((await turn.result()).status).toBe('cancelled');
    expect(types).toEqual(['turnStarted', 'turnCancelled']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is told that the mock is gone by what was under way', async () => {
    install({ latencyMs: 20 });
    const opening = createSession();
    await vi.advanceTimersByTimeAsync(5);
    agent.remove();
    await Promise.all([expect(opening).rejects.toMatchObject({ code: 'IPC_ERROR' }), vi.advanceTimersByTimeAsync(20)]);
  });

  // F14
  test('hears which argument is missing', async () => {
    install();
    await expect(invoke('plugin:youyou-agent|rename_session', { session_id: 's', title: 't' })).rejects.toContain('sessionId');
  });
});
