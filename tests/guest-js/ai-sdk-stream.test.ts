import { readUIMessageStream, type UIMessage } from 'ai';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { toUIMessageStream } from '../../guest-js/ai-sdk.js';
import { AgentError, createSession, type AgentEvent } from '../../guest-js/index.js';
import { mockAgent, type MockAgent } from '../../guest-js/testing.js';
import { chunksOf } from './chat.js';
import { cancelled, completed, event, failed, reasoning, started, text } from './wire.js';

let agent: MockAgent | undefined;
afterEach(() => agent?.remove());

async function* source(events: AgentEvent[], error?: unknown): AsyncGenerator<AgentEvent> {
  yield* events;
  if (error !== undefined) throw error;
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

  // P4
  test.each([
    ['endTurn', 'stop'],
    ['length', 'length'],
    ['contentFilter', 'content-filter'],
    ['refusal', 'other'],
    ['other', 'other'],
  ] as const)('says why the model stopped: %s is %s', async (stopReason, finishReason) => {
    const last = { ...completed(2), stopReason } as AgentEvent;
    const chunks = await chunksOf(toUIMessageStream(source([started(1), last])));
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason });
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
    agent = mockAgent({ everyMs: 0, turns: [['one', { hold: true }, 'two']] });
    const session = await createSession();
    const turn = session.send('hi');
    const reader = toUIMessageStream(turn).getReader();
    for (let type = ''; type !== 'text-delta'; ) type = (await reader.read()).value?.type ?? '';
    const reading = reader.read();
    // The stream comes to wait for the turn.
    await new Promise((resolve) => setTimeout(resolve, 0));
    await reader.cancel();
    expect(await reading).toEqual({ done: true, value: undefined });
    agent.release();
    expect(await turn.text()).toBe('onetwo');
  });
});
