import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AgentError, createSession, type AgentEvent, type Session } from '../../guest-js/index.js';
import { cancelled, completed, deferred, failed, reasoning, settled, started, text, event, Wire } from './wire.js';

let wire: Wire;
let session: Session;
const unhandled = vi.fn();

beforeEach(() => {
  process.on('unhandledRejection', unhandled);
});

afterEach(async () => {
  await new Promise((resolve) => setTimeout(resolve, 0));
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
  wire.remove();
});

async function open(answers = {}): Promise<void> {
  wire = new Wire(answers);
  session = await createSession();
}

async function collect(turn: AsyncIterable<AgentEvent>): Promise<{ events: AgentEvent[]; error: unknown }> {
  const events: AgentEvent[] = [];
  try {
    for await (const item of turn) events.push(item);
    return { events, error: null };
  } catch (error) {
    return { events, error };
  }
}

describe('reading a turn', () => {
  test('the iteration gives all events in order and ends with the last', async () => {
    await open();
    const turn = session.send('hi');
    const all = [started(1), text('a', 2), completed(3, 'a')];
    wire.push(0, ...all);
    expect(await collect(turn)).toEqual({ events: all, error: null });
  });

  test('events that came before the iteration are waiting', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), text('a', 2), completed(3, 'a'));
    await turn.result();
    expect((await collect(turn)).events.map((item) => item.sequence)).toEqual([1, 2, 3]);
  });

  // F20
  test('an event that is faster than the reply of its command is not lost', async () => {
    const reply = deferred<unknown>();
    await open({ send_message: () => reply.promise });
    const turn = session.send('hi');
    wire.push(0, started(1), text('a', 2));
    expect(turn.id).toBe('t');
    reply.resolve({ turnId: 't', subscription: 1 });
    await settled();
    wire.push(0, completed(3, 'a'));
    expect((await collect(turn)).events.map((item) => item.sequence)).toEqual([1, 2, 3]);
  });

  test('the result holds text, reasoning, tool calls and usage', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(
      0,
      started(1),
      reasoning('hm', 2),
      text('Looking. ', 3),
      event(4, { type: 'toolCallStart', step: 0, callId: 'c', toolName: 'read', arguments: { path: 'x' } }),
      event(5, {
        type: 'toolCallEnd', step: 0, callId: 'c', toolName: 'read', output: 'X', durationMs: 7, success: true,
      }),
      text('Done.', 6, 6, 1),
      completed(7, 'Done.'),
    );
    expect(await turn.result()).toEqual({
      status: 'completed',
      turnId: 't',
      isWhole: true,
      stopReason: null,
      text: 'Done.',
      reasoning: 'hm',
      toolCalls: [
        {
          type: 'tool', key: 4, step: 0, callId: 'c', toolName: 'read', arguments: { path: 'x' },
          state: 'done', output: 'X', durationMs: 7,
        },
      ],
      usage: { inputTokens: 1, outputTokens: 2 },
    });
    expect(await turn.text()).toBe('Done.');
  });

  // P4
  test.each([
    ['endTurn', true],
    ['other', true],
    ['length', false],
    ['contentFilter', false],
    ['refusal', false],
  ] as const)('an answer that stopped with %s is whole: %s', async (stopReason, isWhole) => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), text('half', 2), { ...completed(3, 'half'), stopReason } as AgentEvent);
    expect(await turn.result()).toMatchObject({ status: 'completed', stopReason, isWhole, text: 'half' });
    expect(turn.state?.stopReason).toBe(stopReason);
  });

  test('the text stream gives only the words', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), reasoning('hm', 2), text('a', 3), text('', 4), text('b', 5), completed(6, 'ab'));
    const pieces: string[] = [];
    for await (const piece of turn.textStream) pieces.push(piece);
    expect(pieces).toEqual(['a', 'b']);
  });

  test('a text stream that waits is left at once', async () => {
    await open();
    const turn = session.send('hi');
    const reader = turn.textStream[Symbol.asyncIterator]();
    wire.push(0, started(1));
    const waiting = reader.next();
    await settled();
    expect(await reader.return?.()).toEqual({ done: true, value: undefined });
    expect(await waiting).toEqual({ done: true, value: undefined });
    wire.push(0, text('a', 2), completed(3, 'a'));
    expect(await turn.text()).toBe('a');
  });

  test('reads that wait at the same time each get the next event', async () => {
    await open();
    const reader = session.send('hi')[Symbol.asyncIterator]();
    const reads = Promise.all([reader.next(), reader.next(), reader.next(), reader.next()]);
    await settled();
    wire.push(0, started(1));
    await settled();
    wire.push(0, text('a', 2), completed(3, 'a'));
    expect((await reads).map(({ value }) => value?.type)).toEqual(['turnStarted', 'textDelta', 'turnComplete', undefined]);
  });

  test('listeners hear their own type, all types, and nothing after off', async () => {
    await open();
    const turn = session.send('hi');
    const deltas: string[] = [];
    const all: string[] = [];
    const removed = vi.fn();
    turn.on('textDelta', ({ delta }) => deltas.push(delta));
    turn.on('event', ({ type }) => all.push(type));
    turn.on('event', removed)();
    wire.push(0, started(1), text('a', 2), completed(3, 'a'));
    expect({ deltas, all }).toEqual({ deltas: ['a'], all: ['turnStarted', 'textDelta', 'turnComplete'] });
    expect(removed).not.toHaveBeenCalled();
  });

  test('a listener that throws is reported and disturbs nothing', async () => {
    await open();
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const turn = session.send('hi');
    turn.on('event', () => {
      throw new Error('mine');
    });
    wire.push(0, started(1), completed(2, ''));
    expect((await turn.result()).status).toBe('completed');
    expect(report.mock.calls.map(([error]) => String(error))).toEqual(['Error: mine', 'Error: mine']);
    report.mockRestore();
  });

  test('a turn can be iterated once', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), completed(2));
    await collect(turn);
    expect(() => turn[Symbol.asyncIterator]()).toThrowError(expect.objectContaining({ code: 'INVALID_INPUT' }));
    expect(await collect(turn)).toMatchObject({ events: [], error: { code: 'INVALID_INPUT' } });
  });

  test('break only stops listening: nothing is cancelled and the result still comes', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), text('a', 2));
    for await (const item of turn) if (item.type === 'textDelta') break;
    wire.push(0, text('b', 3), completed(4, 'ab'));
    expect(await turn.text()).toBe('ab');
    expect(wire.of('cancel')).toEqual([]);
  });

  // A14
  test('a message sent from the handler of the last event finds the turn ended', async () => {
    await open();
    const turn = session.send('hi');
    let next: unknown;
    turn.on('turnComplete', () => {
      next = session.send('again');
    });
    wire.push(0, started(1), completed(2));
    expect(next).toBeDefined();
    expect(wire.of('send_message').map((args) => args['content'])).toEqual(['hi', 'again']);
  });
});

describe('a turn that fails', () => {
  test('gives its events and then throws the very error of the result', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), text('a', 2), failed(3));
    const { events, error } = await collect(turn);
    expect(events.map((item) => item.sequence)).toEqual([1, 2, 3]);
    expect(error).toBeInstanceOf(AgentError);
    expect(error).toMatchObject({ code: 'PROVIDER_ERROR', retryable: true, source: 'provider', retryAfterMs: 5_000 });
    expect(await turn.result().catch((reason: unknown) => reason)).toBe(error);
  });

  test('when it is refused throws without any event', async () => {
    await open({
      send_message: () => {
        throw { code: 'SESSION_BUSY', message: 'a turn is running', retryable: true, source: 'agent' };
      },
    });
    const turn = session.send('hi');
    const { events, error } = await collect(turn);
    expect(events).toEqual([]);
    expect(error).toMatchObject({ code: 'SESSION_BUSY', message: 'a turn is running' });
    expect(await turn.result().catch((reason: unknown) => reason)).toBe(error);
    expect(turn.id).toBeNull();
  });

  test('and that nobody looks at causes no unhandled rejection', async () => {
    await open();
    session.send('hi');
    wire.push(0, started(1), failed(2));
    const refused = session.send('hi');
    void refused;
    wire.push(1, started(3), failed(4));
    await settled();
  });
});

describe('cancelling', () => {
  test('is no error: the last event is turnCancelled, and what was shown is the result', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), text('half', 2));
    await settled();
    await turn.cancel();
    wire.push(0, cancelled(3));
    expect((await collect(turn)).events.at(-1)?.type).toBe('turnCancelled');
    expect(await turn.result()).toMatchObject({ status: 'cancelled', isWhole: false, text: 'half', usage: { outputTokens: 1 } });
    expect(wire.of('cancel')).toEqual([{ turnId: 't', requestId: null }]);
  });

  // A11
  test('many times is cancelling once', async () => {
    await open();
    const abort = new AbortController();
    const turn = session.send('hi', { signal: abort.signal });
    await settled();
    await Promise.all([turn.cancel(), turn.cancel(), turn.cancel()]);
    abort.abort();
    await settled();
    expect(wire.of('cancel')).toHaveLength(1);
  });

  test('before the agent has accepted names the request', async () => {
    const reply = deferred<unknown>();
    await open({ send_message: () => reply.promise });
    const turn = session.send('hi');
    await turn.cancel();
    const requestId = wire.of('send_message')[0]?.['requestId'];
    expect(wire.of('cancel')).toEqual([{ turnId: null, requestId }]);
    reply.resolve({ turnId: 't', subscription: 1 });
    await settled();
    expect(wire.of('cancel')).toHaveLength(1);
  });

  test('that overtakes its message is repeated with the turn', async () => {
    const reply = deferred<unknown>();
    const answers = [false, true];
    await open({ send_message: () => reply.promise, cancel: () => answers.shift() });
    const turn = session.send('hi');
    const done = turn.cancel();
    await settled();
    reply.resolve({ turnId: 't', subscription: 1 });
    await done;
    expect(wire.of('cancel').map((args) => args['turnId'])).toEqual([null, 't']);
  });

  test('by the signal cancels the turn, and a signal that fires after the end does nothing', async () => {
    await open();
    const abort = new AbortController();
    const first = session.send('hi', { signal: abort.signal });
    await settled();
    abort.abort();
    await settled();
    wire.push(0, started(1), cancelled(2));
    await first.result();
    const late = new AbortController();
    const second = session.send('hi', { signal: late.signal });
    wire.push(1, started(3), completed(4));
    await second.result();
    late.abort();
    await settled();
    expect(wire.of('cancel')).toEqual([{ turnId: 't', requestId: null }]);
  });

  test('with a signal that has fired already sends nothing', async () => {
    await open();
    const turn = session.send('hi', { signal: AbortSignal.abort() });
    expect(await collect(turn)).toEqual({ events: [], error: null });
    expect(await turn.result()).toMatchObject({ status: 'cancelled', turnId: '' });
    expect(wire.of('send_message')).toEqual([]);
  });

  test('with a signal that has fired already cancels a turn that runs', async () => {
    await open();
    const turn = await session.activeTurn({ signal: AbortSignal.abort() });
    await settled();
    expect(wire.of('cancel')).toEqual([{ turnId: 't', requestId: null }]);
    wire.push(0, started(1), cancelled(2));
    expect((await turn?.result())?.status).toBe('cancelled');
  });

  test('that the agent could not be told can be repeated', async () => {
    const answers: (() => unknown)[] = [
      () => {
        throw 'lost';
      },
      () => true,
    ];
    await open({ cancel: () => answers.shift()?.() });
    const turn = session.send('hi');
    await settled();
    await expect(turn.cancel()).rejects.toMatchObject({ code: 'IPC_ERROR', message: 'lost' });
    await expect(turn.cancel()).resolves.toBeUndefined();
  });

  test('of a message that was refused asks the agent for nothing', async () => {
    await open({
      send_message: () => {
        throw { code: 'SESSION_BUSY', message: 'a turn is running', retryable: true, source: 'agent' };
      },
    });
    const turn = session.send('hi');
    await turn.result().catch(() => undefined);
    await turn.cancel();
    expect(wire.of('cancel')).toEqual([]);
  });

  test('leaves nothing behind on a signal that outlives the turn', async () => {
    await open();
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, 'removeEventListener');
    const turn = session.send('hi', { signal });
    wire.push(0, started(1), completed(2));
    await turn.result();
    expect(removed).toHaveBeenCalledExactlyOnceWith('abort', expect.any(Function));
  });

  test('after the end asks the agent for nothing', async () => {
    await open();
    const turn = session.send('hi');
    wire.push(0, started(1), completed(2));
    await turn.result();
    await turn.cancel();
    expect(wire.of('cancel')).toEqual([]);
  });
});
