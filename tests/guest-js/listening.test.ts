import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSession, resumeSession, Session, type AgentError, type AgentEvent } from '../../guest-js/index.js';
import { mockAgent } from '../../guest-js/testing.js';
import { completed, deferred, event, heartbeat, settled, started, text, Wire, words } from './wire.js';

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

describe('listening to a session', () => {
  test('brings the turns of other windows, and ends with the last listener', async () => {
    const agent = mockAgent({ everyMs: 0 });
    const here = await createSession();
    const events: AgentEvent[] = [];
    const stop = here.onEvent((item) => events.push(item));
    await vi.advanceTimersByTimeAsync(0);
    const sent = agent.sendFromElsewhere('from afar');
    await vi.advanceTimersByTimeAsync(10);
    await sent;
    expect(words(events)).toBe('from afar');
    expect(events.at(-1)?.type).toBe('turnComplete');
    stop();
    await vi.advanceTimersByTimeAsync(0);
    expect({ subscriptions: agent.subscriptions, channels: agent.openChannels }).toEqual({ subscriptions: 0, channels: 0 });
    expect(vi.getTimerCount()).toBe(0);
    agent.remove();
  });

  test('notices a turn whose first messages were lost', async () => {
    let lose = true;
    const agent = mockAgent({ everyMs: 0, transport: () => (lose ? 'lose' : 'deliver') });
    const here = await createSession();
    const events: AgentEvent[] = [];
    const stop = here.onEvent((item) => events.push(item));
    await vi.advanceTimersByTimeAsync(0);
    void agent.sendFromElsewhere('unseen');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(events).toEqual([]);
    lose = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(words(events)).toBe('unseen');
    stop();
    agent.remove();
  });

  test('goes on when another window has closed the session and resumed it', async () => {
    const agent = mockAgent({ everyMs: 0 });
    const here = await createSession();
    const events: AgentEvent[] = [];
    const stop = here.onEvent((item) => events.push(item));
    await vi.advanceTimersByTimeAsync(0);
    await Promise.all([agent.sendFromElsewhere('one'), vi.advanceTimersByTimeAsync(10)]);
    await new Session(await here.info()).close();
    await vi.advanceTimersByTimeAsync(30_000);
    await resumeSession(here.id);
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all([agent.sendFromElsewhere('two'), vi.advanceTimersByTimeAsync(10)]);
    expect(words(events)).toBe('onetwo');
    // Once more, with a turn that begins before anybody has looked.
    await new Session(await here.info()).close();
    await vi.advanceTimersByTimeAsync(10_000);
    await resumeSession(here.id);
    await Promise.all([agent.sendFromElsewhere('three'), vi.advanceTimersByTimeAsync(10_000)]);
    expect(words(events)).toBe('onetwothree');
    stop();
    await vi.advanceTimersByTimeAsync(0);
    expect({ subscriptions: agent.subscriptions, timers: vi.getTimerCount() }).toEqual({ subscriptions: 0, timers: 0 });
    agent.remove();
  });

  test('attaches no more than the agent is asked when its subscription and the session are gone', async () => {
    const gone = { code: 'SESSION_NOT_FOUND', message: 'gone', retryable: false, source: 'agent' };
    let refuses = false;
    await open({
      ack: () => !refuses,
      attach: () => {
        if (refuses) throw gone;
        return { subscription: 1, state: 'idle', lastSequence: 0 };
      },
    });
    const stop = session.onEvent(() => undefined);
    await settled();
    refuses = true;
    wire.info = null;
    wire.push(0, started(1));
    for (let n = 2; n <= 16; n += 1) wire.push(0, text('x', n));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(wire.of('attach')).toHaveLength(2);
    stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('hears the end of the turn that a close cuts off', async () => {
    const agent = mockAgent({
      everyMs: 0,
      turns: [['half', { hold: true }]],
      transport: (item) => (item.type === 'turnCancelled' ? { delayMs: 500 } : 'deliver'),
    });
    const here = await createSession();
    const types: string[] = [];
    here.onEvent((item) => types.push(item.type));
    here.send('hi');
    await vi.advanceTimersByTimeAsync(5);
    const closing = here.close();
    await vi.advanceTimersByTimeAsync(500);
    await closing;
    expect(types).toEqual(['turnStarted', 'textDelta', 'turnCancelled']);
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
    agent.remove();
  });

  test('waits for that end no longer than a second, and only for a turn that runs', async () => {
    await open();
    session.onEvent(() => undefined);
    await settled();
    wire.push(0, started(1));
    const closing = session.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    expect(vi.getTimerCount()).toBe(0);
    if (wire.info) wire.info = { ...wire.info, turnId: null, state: 'idle' };
    session.onEvent(() => undefined);
    await settled();
    await session.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('hears a turn whole that a close cuts off before its first event arrived', async () => {
    const agent = mockAgent({ everyMs: 0, turns: [['half', { hold: true }]], transport: () => ({ delayMs: 50 }) });
    const here = await createSession();
    const types: string[] = [];
    here.onEvent((item) => types.push(item.type));
    await vi.advanceTimersByTimeAsync(1);
    const turn = here.send('hi');
    await vi.advanceTimersByTimeAsync(30);
    const closing = here.close();
    await vi.advanceTimersByTimeAsync(1_000);
    await closing;
    expect((await turn.result()).status).toBe('cancelled');
    expect(types).toEqual(['turnStarted', 'textDelta', 'turnCancelled']);
    expect(vi.getTimerCount()).toBe(0);
    agent.remove();
  });

  test('attaches no more when what is new belongs to other sessions', async () => {
    const agent = mockAgent({ everyMs: 0 });
    const here = await createSession();
    await Promise.all([here.send('one').result(), vi.advanceTimersByTimeAsync(10)]);
    const events: AgentEvent[] = [];
    here.onEvent((item) => events.push(item));
    await vi.advanceTimersByTimeAsync(1);
    const other = await createSession({ replace: true });
    await Promise.all([other.send('elsewhere').result(), vi.advanceTimersByTimeAsync(10)]);
    await resumeSession(here.id, { replace: true });
    await vi.advanceTimersByTimeAsync(60_000);
    const attached = agent.calls.filter(({ command }) => command === 'attach').length;
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(agent.calls.filter(({ command }) => command === 'attach')).toHaveLength(attached);
    await Promise.all([agent.sendFromElsewhere('at last'), vi.advanceTimersByTimeAsync(10)]);
    expect(words(events)).toBe('at last');
    agent.remove();
  });

  test('asks less and less often for a session that stays closed', async () => {
    const agent = mockAgent({ everyMs: 0 });
    const here = await createSession();
    const stop = here.onEvent(() => undefined);
    await vi.advanceTimersByTimeAsync(1);
    await createSession({ replace: true });
    const asked = (): number => agent.calls.filter(({ command }) => command === 'current_session').length;
    const before = asked();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(asked() - before).toBeLessThanOrEqual(64);
    stop();
    expect(vi.getTimerCount()).toBe(0);
    agent.remove();
  });

  test('that cannot begin is reported once, and begins with the next listener', async () => {
    await open();
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const { info } = wire;
    wire.info = null;
    const first = session.onEvent(() => undefined);
    await settled();
    first();
    expect(report.mock.calls.map(([error]) => (error as AgentError).code)).toEqual(['SESSION_NOT_FOUND']);
    // One that is gone before it could begin says nothing.
    session.onEvent(() => undefined)();
    await settled();
    wire.info = info;
    const types: string[] = [];
    const stops = [1, 2].map(() => session.onEvent((item) => types.push(item.type)));
    await settled();
    wire.push(2, started(1));
    expect(types).toEqual(['turnStarted', 'turnStarted']);
    expect(report).toHaveBeenCalledOnce();
    for (const stop of stops) stop();
    report.mockRestore();
  });

  test('goes on when a close was denied, and ends with one that could not store everything', async () => {
    const answers: unknown[] = [
      'youyou-agent.close_session not allowed',
      { code: 'STORAGE_ERROR', message: 'full', retryable: true, source: 'storage' },
    ];
    await open({
      close_session: () => {
        throw answers.shift();
      },
    });
    const types: string[] = [];
    session.onEvent((item) => types.push(item.type));
    await settled();
    await expect(session.close()).rejects.toMatchObject({ code: 'IPC_DENIED' });
    wire.push(0, started(1), completed(2));
    expect(types).toEqual(['turnStarted', 'turnComplete']);
    await expect(session.close()).rejects.toMatchObject({ code: 'STORAGE_ERROR' });
    wire.push(0, started(3));
    expect(types).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  // MD8
  test('that was begun before a message hears its whole turn, however late the agent answers', async () => {
    const reply = deferred<unknown>();
    await open({ attach: () => reply.promise });
    const types: string[] = [];
    session.onEvent((item) => types.push(item.type));
    // Another handle of the same session, as a second component has one.
    const turn = new Session(await session.info()).send('hi');
    await settled();
    expect(wire.of('send_message')).toEqual([]);
    reply.resolve({ subscription: 9, state: 'idle', lastSequence: 7 });
    await settled();
    expect(wire.of('send_message')).toHaveLength(1);
    wire.push(0, started(8), completed(9));
    wire.push(1, started(8), completed(9));
    expect(types).toEqual(['turnStarted', 'turnComplete']);
    await turn.result();
    // The next message waits for nothing.
    session.send('again');
    expect(wire.of('send_message')).toHaveLength(2);
    await session.close();
  });

  // MD8
  test('in the same tick as a message hears its whole turn from the mock agent, too', async () => {
    const agent = mockAgent({ everyMs: 0, latencyMs: 1 });
    const [here] = await Promise.all([createSession(), vi.advanceTimersByTimeAsync(1)]);
    const events: AgentEvent[] = [];
    here.onEvent((item) => events.push(item));
    await Promise.all([here.send('hi').result(), vi.advanceTimersByTimeAsync(10)]);
    expect(events.map(({ type }) => type)).toEqual(['turnStarted', 'textDelta', 'turnComplete']);
    agent.remove();
  });

  // MD8
  test('that the agent never answers holds a message back no longer than two seconds', async () => {
    await open({ attach: () => new Promise(() => undefined) });
    session.onEvent(() => undefined);
    session.send('hi');
    await vi.advanceTimersByTimeAsync(1_999);
    expect(wire.of('send_message')).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(wire.of('send_message')).toHaveLength(1);
  });

  // MD8
  test('that is refused lets the message go out', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await open({
      attach: () => {
        throw 'youyou-agent.attach not allowed';
      },
    });
    session.onEvent(() => undefined);
    session.send('hi');
    await settled();
    expect(wire.of('send_message')).toHaveLength(1);
    expect(report).toHaveBeenCalledOnce();
    report.mockRestore();
  });

  test('is not disturbed by events that were faster than the reply', async () => {
    const reply = deferred<unknown>();
    await open({ attach: () => reply.promise });
    const events: AgentEvent[] = [];
    session.onEvent((item) => events.push(item));
    wire.push(0, started(8), text('a', 9));
    reply.resolve({ subscription: 1, state: 'running', turnId: 't', lastSequence: 7 });
    await settled();
    wire.push(0, heartbeat(9), text('a', 9), text('b', 10), completed(11));
    expect(events.map(({ sequence }) => sequence)).toEqual([8, 9, 10, 11]);
    expect(wire.of('attach')).toHaveLength(1);
    await session.close();
  });

  test('hears that a silent turn of another window runs, and fetches what it missed', async () => {
    await open();
    const events: AgentEvent[] = [];
    session.onEvent((item) => events.push(item));
    await settled();
    expect(wire.of('ack')).toEqual([{ subscription: 1, sequence: 0 }]);
    wire.push(0, started(1), heartbeat(1));
    expect(wire.of('attach')).toHaveLength(1);
    wire.skip(0);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(wire.of('attach').at(-1)).toMatchObject({ afterSequence: 1 });
    wire.push(1, text('a', 2), completed(3, 'a'));
    expect(words(events)).toBe('a');
    expect(wire.of('current_session')).toEqual([]);
    await session.close();
  });

  test('is told of turns that were dropped unread and of what happens between turns, and waits for none of them', async () => {
    await open();
    const events: AgentEvent[] = [];
    session.onEvent((item) => events.push(item));
    if (wire.info) wire.info = { ...wire.info, state: 'idle', turnId: null, lastSequence: 91 };
    await settled();
    wire.push(0, event(90, { type: 'skipped', events: 80 }));
    wire.push(0, event(91, { type: 'warning', message: 'a memory was not stored', source: 'storage' }, ''));
    expect(events).toMatchObject([{ type: 'skipped', events: 80 }, { type: 'warning' }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(wire.of('attach')).toHaveLength(1);
    await session.close();
  });
});

describe('the events of a session as an iteration', () => {
  async function read(events: AsyncIterable<AgentEvent>, into: string[], until?: string): Promise<unknown> {
    try {
      for await (const { type } of events) {
        into.push(type);
        if (type === until) break;
      }
      return null;
    } catch (error) {
      return error;
    }
  }

  test('come in order, also to a reader that begins before a message and is left with break', async () => {
    const agent = mockAgent({ everyMs: 0 });
    const here = await createSession();
    const types: string[] = [];
    const reading = read(here.events(), types, 'turnComplete');
    here.send('hi');
    await vi.advanceTimersByTimeAsync(10);
    expect(await reading).toBeNull();
    expect(types).toEqual(['turnStarted', 'textDelta', 'turnComplete']);
    await vi.advanceTimersByTimeAsync(1);
    expect({ subscriptions: agent.subscriptions, timers: vi.getTimerCount() }).toEqual({ subscriptions: 0, timers: 0 });
    agent.remove();
  });

  test('end when the session is closed, with the end of the turn that the close cuts off', async () => {
    const agent = mockAgent({ everyMs: 0, turns: [['half', { hold: true }]] });
    const here = await createSession();
    const types: string[][] = [[], []];
    const readings = types.map((into) => read(here.events(), into));
    here.send('hi');
    await vi.advanceTimersByTimeAsync(5);
    await Promise.all([here.close(), vi.advanceTimersByTimeAsync(10)]);
    expect(await Promise.all(readings)).toEqual([null, null]);
    expect(types).toEqual([1, 2].map(() => ['turnStarted', 'textDelta', 'turnCancelled']));
    agent.remove();
  });

  test('throw why listening cannot begin, and report nothing as uncaught', async () => {
    await open();
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    wire.info = null;
    expect(await read(session.events(), [])).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(report).not.toHaveBeenCalled();
    report.mockRestore();
  });

  test('listen to nothing before the iteration begins', async () => {
    await open();
    session.events();
    await settled();
    expect(wire.of('attach')).toEqual([]);
  });
});
