import { describe, expect, test } from 'vitest';
import { reasoningOf, reduceTurn, textOf, type AgentEvent, type TurnState } from '../../guest-js/index.js';
import { cancelled, completed, event, failed, reasoning, started, text } from './wire.js';

function fold(events: AgentEvent[]): TurnState {
  const state = events.reduce<TurnState | undefined>(reduceTurn, undefined);
  if (!state) throw new Error('no events');
  return state;
}

/** What a screen shows of a state; the log is bookkeeping. */
function shown({ log, startedAt, ...rest }: TurnState): unknown {
  void log;
  void startedAt;
  return rest;
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}

/** A shuffle that is the same in every run. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  const result = [...items];
  let state = seed;
  for (let i = result.length - 1; i > 0; i -= 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const j = state % (i + 1);
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}

const call = (sequence: number, callId: string, step = 0): AgentEvent =>
  event(sequence, { type: 'toolCallStart', step, callId, toolName: 'read', arguments: { path: callId } });
const ended = (sequence: number, callId: string, step = 0): AgentEvent =>
  event(sequence, {
    type: 'toolCallEnd', step, callId, toolName: 'read', output: `<${callId}>`, durationMs: 5, success: true,
  });

const TURN: AgentEvent[] = [
  started(1),
  reasoning('Let me ', 2),
  reasoning('look.', 3),
  text('Two ', 4),
  text('reads. ', 5),
  call(6, 'a'),
  call(7, 'b'),
  event(8, { type: 'toolProgress', callId: 'a', message: 'half' }),
  ended(9, 'b'),
  event(10, {
    type: 'toolCallEnd', step: 0, callId: 'a', toolName: 'read', output: 'TOOL_TIMEOUT: slow', durationMs: 9,
    success: false, error: 'TOOL_TIMEOUT', metadata: { tries: 1 },
  }),
  event(11, { type: 'contextCompacted', method: 'truncated', tokensBefore: 9, tokensAfter: 3, messagesRemoved: 2 }),
  event(12, {
    type: 'providerRetry', attempt: 1, delayMs: 500,
    error: { code: 'PROVIDER_ERROR', message: 'busy', retryable: true, source: 'provider' },
  }),
  event(13, { type: 'warning', message: 'careful', source: 'plugin' }),
  text('Done', 14, 14, 1),
  text('.', 15, 15, 1),
  completed(16, 'Done.'),
];

describe('the state of a turn', () => {
  test('shows text, reasoning, tools and notes in the order of events', () => {
    const state = fold(TURN);
    expect(state.parts).toEqual([
      { type: 'reasoning', key: 2, step: 0, text: 'Let me look.' },
      { type: 'text', key: 4, step: 0, text: 'Two reads. ' },
      {
        type: 'tool', key: 6, step: 0, callId: 'a', toolName: 'read', arguments: { path: 'a' }, state: 'error',
        progress: 'half', output: 'TOOL_TIMEOUT: slow', durationMs: 9, error: 'TOOL_TIMEOUT', metadata: { tries: 1 },
      },
      {
        type: 'tool', key: 7, step: 0, callId: 'b', toolName: 'read', arguments: { path: 'b' }, state: 'done',
        output: '<b>', durationMs: 5,
      },
      { type: 'compaction', key: 11, method: 'truncated', tokensBefore: 9, tokensAfter: 3, messagesRemoved: 2 },
      { type: 'retry', key: 12, attempt: 1, delayMs: 500, error: expect.objectContaining({ message: 'busy' }) },
      { type: 'warning', key: 13, message: 'careful', source: 'plugin' },
      { type: 'text', key: 14, step: 1, text: 'Done.' },
    ]);
    expect(state).toMatchObject({
      sessionId: 's', turnId: 't', status: 'completed', assistantOutput: 'Done.', contextTokens: 3,
      contextWindow: 100, startedAt: 1_001, endedAt: 1_016, lastSequence: 16, log: { pieces: [], gaps: 0 },
    });
    expect([textOf(state), reasoningOf(state)]).toEqual(['Two reads. Done.', 'Let me look.']);
  });

  test('is running, failed or cancelled as the events say', () => {
    expect(fold([started(1)]).status).toBe('running');
    expect(fold([started(1), failed(2, 'down')])).toMatchObject({ status: 'failed', error: { message: 'down' } });
    expect(fold([started(1), text('a', 2), cancelled(3)])).toMatchObject({ status: 'cancelled', usage: { outputTokens: 1 } });
  });

  test('is never changed in place', () => {
    let state: TurnState | undefined;
    for (const item of freeze(TURN)) state = freeze(reduceTurn(state, item));
    expect(state?.status).toBe('completed');
  });
});

describe('idempotence', () => {
  test('a known event gives back the very same object, at every point of the turn', () => {
    let state: TurnState | undefined;
    TURN.forEach((item, index) => {
      state = reduceTurn(state, item);
      for (const known of TURN.slice(0, index + 1)) expect(reduceTurn(state, known)).toBe(state);
    });
  });

  test('the whole turn twice, or each event twice, shows the same as once', () => {
    const once = shown(fold(TURN));
    expect(shown(fold([...TURN, ...TURN]))).toEqual(once);
    expect(shown(fold(TURN.flatMap((item) => [item, item])))).toEqual(once);
  });
});

describe('order', () => {
  // F1
  test.each(Array.from({ length: 40 }, (_, seed) => seed + 1))('shuffled events show the same (%i)', (seed) => {
    expect(shown(fold(shuffled(TURN, seed)))).toEqual(shown(fold(TURN)));
  });

  test('in a long turn a late event finds its place too', () => {
    const long = [started(1), ...Array.from({ length: 1_000 }, (_, index) => text(`${index} `, index + 2))];
    const late = long.splice(500, 1);
    const state = fold([...long, ...late]);
    expect(textOf(state)).toBe(Array.from({ length: 1_000 }, (_, index) => `${index} `).join(''));
    for (const known of [...late, long[3], long[900]]) if (known) expect(reduceTurn(state, known)).toBe(state);
  });

  test('a number that the agent left out changes nothing', () => {
    const gaps = [started(1), text('a', 5), text('b', 9), completed(20, 'ab')];
    expect(textOf(fold(gaps))).toBe('ab');
    expect(textOf(fold(shuffled(gaps, 3)))).toBe('ab');
  });
});

describe('deltas that were joined differently', () => {
  const single = [started(1), text('ab', 2), text('cd', 3), text('ef', 4), completed(5, 'abcdef')];
  const joined = [started(1), text('abcd', 3, 2), text('ef', 4), completed(5, 'abcdef')];
  const coarse = [started(1), text('abcdef', 4, 2), completed(5, 'abcdef')];
  const later = [text('cdef', 4, 3), completed(5, 'abcdef')];

  test.each([
    ['single, then joined', [...single, ...joined]],
    ['joined, then single', [...joined, ...single]],
    ['coarse, then single', [...coarse, ...single]],
    ['a late listener beside the first', [...joined.slice(0, 2), ...later.slice(0, 1), ...joined.slice(2), ...later.slice(1)]],
    ['interleaved', single.flatMap((item, index) => [item, joined[index], coarse[index]]).filter((item) => item !== undefined)],
  ])('show every word once: %s', (_, events) => {
    expect(textOf(fold(events))).toBe('abcdef');
  });

  test('show every word once when two windows feed one state', () => {
    const paths = [single, joined, coarse, [started(1), ...later]];
    for (const one of paths) {
      for (const other of paths) {
        for (let seed = 1; seed < 8; seed += 1) {
          if (one === paths[3] && other === paths[3]) continue;
          expect(textOf(fold(shuffled([...one, ...other], seed)))).toBe('abcdef');
        }
      }
    }
  });
});

describe('a very long turn', () => {
  const CALLS = 10_000;

  /** Ten thousand calls that begin, tell of themselves and end. */
  function* calls(): Generator<AgentEvent> {
    yield started(1);
    for (let index = 0; index < CALLS; index += 1) {
      const sequence = 2 + index * 3;
      yield call(sequence, `c${index}`);
      yield event(sequence + 1, { type: 'toolProgress', callId: `c${index}`, message: 'half' });
      yield ended(sequence + 2, `c${index}`);
    }
  }

  /** What an event may cost, in array elements that are read or copied: two pieces and two lists of pieces. */
  const MOST = 1_000;

  /** Folds events and counts the elements that array methods and spreads go through; too many throw. */
  function foldCounted(events: readonly AgentEvent[]): TurnState {
    const prototype = Array.prototype as unknown as Record<string | symbol, (...args: unknown[]) => unknown>;
    const names = ['slice', 'flat', 'map', 'concat', 'findIndex', Symbol.iterator];
    const originals = names.map((name) => [name, prototype[name]] as const);
    let left = MOST * events.length;
    const spend = (elements: number): void => {
      left -= elements;
      if (left < 0) throw new Error(`an event costs more than ${MOST} elements`);
    };
    let state: TurnState | undefined;
    try {
      for (const [name, original] of originals) {
        prototype[name] = function (this: unknown[], ...args: unknown[]) {
          spend(this.length);
          return original?.apply(this, args);
        };
      }
      for (let at = 0; at < events.length; at += 1) state = reduceTurn(state, events[at] as AgentEvent);
    } finally {
      for (const [name, original] of originals) if (original) prototype[name] = original;
    }
    if (!state) throw new Error('no events');
    return state;
  }

  const all = [...calls()];

  // X15
  test('shows each of ten thousand calls, and an event costs no copy of all that came before', () => {
    const { parts } = foldCounted(all);
    expect(parts).toHaveLength(CALLS);
    expect(parts.every((part) => part.type === 'tool' && part.state === 'done' && part.progress === 'half')).toBe(true);
    expect(parts[7_777]).toMatchObject({ callId: 'c7777', output: '<c7777>' });
  });

  // X15
  test.each([
    ['in reverse', [...all].reverse()],
    ['the second half first', [...all.slice(15_000), ...all.slice(0, 15_000)]],
    ['every other one late', [...all.filter((_, index) => index % 2 === 0), ...all.filter((_, index) => index % 2 === 1)]],
    ['each pair the wrong way round', all.map((_, index) => all[index ^ 1] ?? all[index]).filter((item) => item !== undefined)],
  ])('finds the place of ten thousand late events: %s', (_, events) => {
    const state = foldCounted(events);
    expect(state.parts).toEqual(fold(all).parts);
    expect(state).toMatchObject({ status: 'running', startedAt: 1_001, lastSequence: all.length });
  });

  test('that ends is let go of, whatever the order', () => {
    const last = completed(all.length + 1, '');
    for (const events of [[...all, last], [last, ...[...all].reverse()]]) {
      const state = fold(events);
      expect(state.log).toEqual({ pieces: [], gaps: 0 });
      expect(state.parts).toHaveLength(CALLS);
    }
  });
});

describe('a state that went another way', () => {
  test('keeps what it showed, when two states come from one', () => {
    const one = fold([started(1), call(2, 'a')]);
    const begun = reduceTurn(one, call(3, 'x'));
    const right = [text('-', 3), call(4, 'x'), ended(5, 'x'), ended(6, 'a')].reduce<TurnState>(reduceTurn, one);
    const left = reduceTurn(begun, ended(4, 'x'));
    expect(one.parts).toMatchObject([{ callId: 'a', state: 'running' }]);
    expect(left.parts).toMatchObject([{ callId: 'a', state: 'running' }, { callId: 'x', output: '<x>' }]);
    expect(right.parts).toMatchObject([{ callId: 'a', output: '<a>' }, { type: 'text' }, { callId: 'x', output: '<x>' }]);
    expect(reduceTurn(left, ended(5, 'a')).parts).toMatchObject([{ output: '<a>' }, { output: '<x>' }]);
  });

  test.each([
    ['structuredClone', (state: TurnState) => structuredClone(state)],
    ['JSON', (state: TurnState) => JSON.parse(JSON.stringify(state)) as TurnState],
    ['spread', (state: TurnState) => ({ ...state })],
  ])('is plain data: a copy by %s shows the same and goes on', (_, copy) => {
    for (let at = 1; at < TURN.length; at += 1) {
      const state = fold(TURN.slice(0, at));
      expect(copy(state)).toEqual(state);
      const resumed = TURN.slice(at).reduce<TurnState>(reduceTurn, copy(state));
      expect(shown(resumed)).toEqual(shown(fold(TURN)));
    }
  });
});

describe('turns after each other', () => {
  test('an event of a newer turn starts anew, and one of an older turn is ignored', () => {
    const first = fold([started(1), text('old', 2)]);
    const second = reduceTurn(first, started(7, 'u'));
    expect(second).toMatchObject({ turnId: 'u', status: 'running', parts: [] });
    expect(reduceTurn(second, text('late', 3))).toBe(second);
  });

  test('what was skipped or happens between turns belongs to none', () => {
    const skipped = event(9, { type: 'skipped', events: 5 }, 'u');
    const state = fold([started(1), text('a', 2)]);
    expect(reduceTurn(state, skipped)).toBe(state);
    expect(reduceTurn(state, event(9, { type: 'warning', message: 'late', source: 'agent' }, ''))).toBe(state);
    const nothing = fold([skipped]);
    expect(nothing).toMatchObject({ turnId: 'u', status: 'completed', parts: [] });
    expect(reduceTurn(nothing, started(10, 'v'))).toMatchObject({ turnId: 'v', status: 'running' });
  });
});
