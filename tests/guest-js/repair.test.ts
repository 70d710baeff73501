import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSession, currentSession, type AgentEvent, type Session } from '../../guest-js/index.js';
import { mockAgent } from '../../guest-js/testing.js';
import { completed, event, heartbeat, outcome, settled, started, text, Wire, words } from './wire.js';

let wire: Wire;
let session: Session;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  wire?.remove();
  vi.useRealTimers();
});

async function open(answers = {}): Promise<void> {
  wire = new Wire(answers);
  session = await createSession();
}

/** Everything a turn delivers, as it is delivered. */
function record(turn: { on(name: 'event', listener: (item: AgentEvent) => void): unknown }): AgentEvent[] {
  const events: AgentEvent[] = [];
  turn.on('event', (item) => events.push(item));
  return events;
}

describe('a message that is lost on the way', () => {
  test('is fetched again after three seconds of silence, and every word is shown once', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('a', 2));
    wire.skip(0);
    wire.push(0, text('c', 4), text('d', 5));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(wire.of('attach')).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(wire.of('attach')).toEqual([expect.objectContaining({ sessionId: 's', afterSequence: 2 })]);
    wire.push(1, text('bcd', 5, 3), completed(6, 'abcd'));
    expect(words(events)).toBe('abcd');
    expect(await turn.text()).toBe('abcd');
    expect(events.map((item) => item.sequence)).toEqual([1, 2, 5, 6]);
  });

  test('what the broken channel still brings afterwards is not shown twice', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1));
    const late = wire.skip(0);
    wire.push(0, text('b', 3));
    await vi.advanceTimersByTimeAsync(3_000);
    wire.push(1, text('ab', 3, 2));
    wire.pushAs(0, late, text('a', 2));
    wire.push(1, completed(4, 'ab'));
    expect(words(events)).toBe('ab');
    await turn.result();
    // The broken channel first, and at the end the one that replaced it.
    expect(wire.of('detach')).toEqual([{ subscription: 1 }, { subscription: 2 }]);
  });

  test('and that could not be fetched is still taken from the first channel when it comes after all', async () => {
    await open({
      attach: () => {
        throw 'lost';
      },
    });
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1));
    const late = wire.skip(0);
    wire.push(0, completed(3, 'a'));
    await vi.advanceTimersByTimeAsync(3_000);
    expect(wire.of('attach')).toHaveLength(1);
    wire.pushAs(0, late, text('a', 2));
    expect(words(events)).toBe('a');
    expect(await turn.text()).toBe('a');
  });

  test('also when it was the last one of the turn', async () => {
    await open();
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1), text('a', 2));
    if (wire.info) wire.info = { ...wire.info, state: 'idle', turnId: null, lastSequence: 3 };
    wire.outcome.resolve(outcome('completed', 3, { assistantOutput: 'a' }));
    await vi.advanceTimersByTimeAsync(3_000);
    wire.push(1, completed(3, 'a'));
    expect(await turn.text()).toBe('a');
  });

  test('a session that is gone leaves the outcome: the turn ends with it', async () => {
    await open({
      attach: () => {
        throw { code: 'SESSION_NOT_FOUND', message: 'closed', retryable: false, source: 'agent' };
      },
    });
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('a', 2));
    wire.info = null;
    wire.outcome.resolve(outcome('completed', 9, { assistantOutput: 'a and more', stopReason: 'length' }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await turn.result()).toMatchObject({ text: 'a and more', isWhole: false, stopReason: 'length' });
    expect(events.at(-1)).toMatchObject({ type: 'turnComplete', status: 'completed', sequence: 9 });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('also where the agent may not be asked for its session: the outcome ends the turn', async () => {
    const denied = (): never => {
      throw 'youyou-agent.current_session not allowed';
    };
    await open({ current_session: denied, attach: denied });
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    wire.skip(0);
    wire.outcome.resolve(outcome('completed', 3, { assistantOutput: 'a' }));
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await turn.text()).toBe('a');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('also where the agent may be asked for nothing: the turn ends with that error', async () => {
    const denied = (): never => {
      throw 'youyou-agent command not allowed';
    };
    await open({ current_session: denied, attach: denied, wait_turn: denied });
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    wire.skip(0);
    await Promise.all([
      expect(turn.result()).rejects.toMatchObject({ code: 'IPC_DENIED' }),
      vi.advanceTimersByTimeAsync(10_000),
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a failed outcome of a session that is gone fails the turn with its error', async () => {
    await open({
      attach: () => {
        throw { code: 'SESSION_NOT_FOUND', message: 'closed', retryable: false, source: 'agent' };
      },
    });
    const result = session.send('hi').result().catch((error: unknown) => error);
    wire.info = null;
    const error = { code: 'PROVIDER_ERROR', message: 'down', retryable: true, source: 'provider' } as const;
    wire.outcome.resolve(outcome('failed', 9, { error }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await result).toMatchObject(error);
  });
});

describe('silence', () => {
  test('with heartbeats repairs nothing and asks for nothing', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1));
    const calls = wire.calls.length;
    for (let second = 0; second < 60; second += 1) {
      await vi.advanceTimersByTimeAsync(1_000);
      wire.push(0, heartbeat(1));
    }
    expect(wire.calls).toHaveLength(calls);
    wire.push(0, completed(2));
    await turn.result();
    expect(events.map(({ type }) => type)).toEqual(['turnStarted', 'turnComplete']);
  });

  test('with the heartbeats of another turn only is silence', async () => {
    await open();
    const turn = await session.activeTurn();
    await settled();
    wire.push(0, started(1));
    await vi.advanceTimersByTimeAsync(2_000);
    wire.push(0, heartbeat(9, 'other'), started(8, 'other'), heartbeat(1, 'other'));
    await vi.advanceTimersByTimeAsync(999);
    expect(wire.of('attach')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(wire.of('attach').map((args) => args['afterSequence'])).toEqual([null, 1]);
    wire.push(1, completed(2));
    await turn?.result();
  });

  test('begins anew with each sign of life: what is lost is fetched three seconds after the last', async () => {
    await open();
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    await vi.advanceTimersByTimeAsync(2_500);
    wire.push(0, heartbeat(1));
    await vi.advanceTimersByTimeAsync(2_500);
    expect(wire.of('attach')).toEqual([]);
    await vi.advanceTimersByTimeAsync(500);
    expect(wire.of('attach')).toHaveLength(1);
    wire.push(1, completed(2));
    await turn.result();
  });

  test('that a heartbeat ends with a number the page does not have is repaired at once, and not again at once', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('a', 2), heartbeat(5));
    expect(wire.of('attach').map((args) => args['afterSequence'])).toEqual([2]);
    await settled();
    wire.push(1, heartbeat(5), heartbeat(5));
    expect(wire.of('attach')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(wire.of('attach')).toHaveLength(2);
    wire.push(2, text('bc', 5, 3), heartbeat(5), completed(6, 'abc'));
    expect(wire.of('attach')).toHaveLength(2);
    expect(words(events)).toBe('abc');
    await turn.result();
  });

  test('in which an attach is never answered ends with the outcome all the same', async () => {
    await open({ attach: () => new Promise(() => undefined) });
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    wire.outcome.resolve(outcome('completed', 9, { assistantOutput: 'a' }));
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await turn.text()).toBe('a');
    expect(wire.of('attach')).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is watched no longer than the turn runs', async () => {
    await open();
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1), completed(2));
    await turn.result();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(wire.of('current_session')).toEqual([]);
  });

  test('in which an attach fails leads to another one', async () => {
    let calls = 0;
    await open({
      attach: () => {
        calls += 1;
        if (calls === 1) throw 'lost';
        return { subscription: 2, state: 'running', turnId: 't', lastSequence: 2 };
      },
    });
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    await vi.advanceTimersByTimeAsync(6_000);
    expect(wire.of('attach')).toHaveLength(2);
    wire.push(2, completed(2));
    await turn.result();
  });
});

describe('order', () => {
  // F1
  test('a large message that is overtaken by small ones is delivered in its place', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    const output = 'x'.repeat(200 * 1024);
    const start = event(2, { type: 'toolCallStart', step: 0, callId: 'c', toolName: 'read', arguments: {} });
    const end = event(3, {
      type: 'toolCallEnd', step: 0, callId: 'c', toolName: 'read', output, durationMs: 1, success: true,
    });
    wire.pushAs(0, 0, started(1));
    wire.pushAs(0, 1, start);
    wire.pushAs(0, 3, text('b', 4, 4, 1));
    wire.pushAs(0, 4, completed(5, 'b'));
    expect(events.map((item) => item.sequence)).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(300);
    wire.pushAs(0, 2, end);
    expect(events.map((item) => item.sequence)).toEqual([1, 2, 3, 4, 5]);
    expect((await turn.result()).toolCalls[0]?.output).toHaveLength(200 * 1024);
  });

  test('an event that comes twice is delivered once', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('a', 2), text('a', 2), started(1), completed(3, 'a'));
    expect(events.map((item) => item.sequence)).toEqual([1, 2, 3]);
  });

  test('a joined delta that overlaps what is known adds only what is new', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('ab', 2), text('cd', 3), text('cdef', 4, 3), completed(5, 'abcdef'));
    expect(words(events)).toBe('abcdef');
    expect(events.at(3)).toMatchObject({ type: 'textDelta', delta: 'ef', firstSequence: 4, sequence: 4 });
    await turn.result();
  });

  test('numbers that the agent left out hold up nothing', async () => {
    await open();
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1), text('a', 7), text('b', 12));
    expect(words(events)).toBe('ab');
    wire.push(0, completed(20, 'ab'));
    await turn.result();
    expect(wire.of('attach')).toEqual([]);
  });
});

describe('acknowledging', () => {
  test('happens with the reply, which asks for heartbeats, and about every sixteen messages with the newest number', async () => {
    await open();
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    for (let sequence = 2; sequence <= 40; sequence += 1) wire.push(0, text('x', sequence));
    expect(wire.of('ack')).toEqual([
      { subscription: 1, sequence: 0 },
      { subscription: 1, sequence: 16 },
      { subscription: 1, sequence: 32 },
    ]);
    wire.push(0, completed(41));
    await turn.result();
  });

  test('names the newest message where messages were faster than the reply', async () => {
    await open();
    session.send('hi');
    wire.push(0, started(1), text('a', 2));
    await settled();
    expect(wire.of('ack')).toEqual([{ subscription: 1, sequence: 2 }]);
  });

  test('of a subscription that the agent has dropped leads to silence, and silence to another one', async () => {
    await open({ ack: () => false });
    const turn = session.send('hi');
    const events = record(turn);
    await settled();
    wire.push(0, started(1));
    for (let sequence = 2; sequence <= 16; sequence += 1) wire.push(0, text('x', sequence));
    await vi.advanceTimersByTimeAsync(2_999);
    expect(wire.of('attach')).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(wire.of('attach')).toEqual([expect.objectContaining({ afterSequence: 16 })]);
    wire.push(1, completed(17));
    await turn.result();
    expect(events).toHaveLength(17);
  });
});

describe('a subscription that the agent has forgotten because everything is sent', () => {
  test('is not replaced while the rest is on its way', async () => {
    await open({ ack: () => false });
    const turn = session.send('hi');
    await settled();
    wire.push(0, started(1));
    for (let sequence = 2; sequence <= 20; sequence += 1) wire.push(0, text('x', sequence));
    await vi.advanceTimersByTimeAsync(100);
    wire.push(0, completed(21));
    await turn.result();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(wire.of('attach')).toEqual([]);
  });
});

describe('a page that reloads in the middle of a turn', () => {
  // F4
  test('finds the session and its turn again, from the first word, without gap or double', async () => {
    const agent = mockAgent({ turns: [['one two three four five six seven']], everyMs: 100, pieceLength: 4 });
    const before = await createSession();
    before.send('count');
    await vi.advanceTimersByTimeAsync(350);
    agent.reload();
    await vi.advanceTimersByTimeAsync(200);
    const after = await currentSession();
    const turn = await after?.activeTurn();
    if (!turn) throw new Error('no turn runs');
    const events = record(turn);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(words(events)).toBe('one two three four five six seven');
    expect(events[0]?.type).toBe('turnStarted');
    expect(await turn.text()).toBe('one two three four five six seven');
    expect(await after?.activeTurn()).toBeNull();
    agent.remove();
  });

  test('an unreliable way loses no word: every fifth message is lost, every third is late', async () => {
    let count = 0;
    const agent = mockAgent({
      turns: [['The quick brown fox jumps over the lazy dog. '.repeat(4)]],
      everyMs: 50,
      transport: () => {
        count += 1;
        if (count % 5 === 0 && count < 40) return 'lose';
        return count % 3 === 0 ? { delayMs: 120 } : 'deliver';
      },
    });
    const turn = (await createSession()).send('go');
    const events = record(turn);
    await vi.advanceTimersByTimeAsync(60_000);
    const result = await turn.result();
    expect(words(events)).toBe(result.text);
    const numbers = events.map((item) => item.sequence);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    agent.remove();
  });
});
