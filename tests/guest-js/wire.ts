/**
 * An agent driven by hand: the test decides what each command answers and when each
 * message reaches the page, in whatever order and number.
 */

import type { AgentEvent, AgentEventKind, ChannelMessage, Heartbeat, SessionInfo, TurnOutcome } from '../../guest-js/bindings.js';
import { MockPage } from '../../guest-js/testing/page.js';

const PREFIX = 'plugin:youyou-agent|';

export interface WireCall {
  command: string;
  args: Record<string, unknown>;
}

/** What the agent says where no session is open. */
export const NOT_OPEN = { code: 'SESSION_NOT_FOUND', message: 'not open', retryable: false, source: 'agent' } as const;

type Answer = (args: Record<string, unknown>) => unknown;

/** A promise that the test settles. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

export class Wire {
  readonly calls: WireCall[] = [];
  /** Channels the page opened, in order: numbers of their callbacks. */
  readonly channels: number[] = [];
  info: SessionInfo | null = {
    sessionId: 's',
    title: '',
    modelId: 'm',
    state: 'running',
    turnId: 't',
    lastSequence: 0,
    contextTokens: 0,
    contextWindow: 100,
    messageCount: 0,
    createdAt: 0,
  };
  readonly outcome = deferred<TurnOutcome>();
  readonly #page: MockPage;
  readonly #indices = new Map<number, number>();

  constructor(answers: Record<string, Answer> = {}) {
    let subscription = 0;
    const all: Record<string, Answer> = {
      create_session: () => this.info,
      current_session: () => this.info,
      send_message: () => ({ turnId: 't', subscription: ++subscription }),
      retry_turn: () => ({ turnId: 't', subscription: ++subscription }),
      attach: () => {
        if (this.info === null) throw NOT_OPEN;
        const { state, turnId, lastSequence } = this.info;
        return { subscription: ++subscription, state, turnId, lastSequence };
      },
      wait_turn: () => this.outcome.promise,
      ack: () => true,
      cancel: () => true,
      detach: () => null,
      close_session: () => null,
      ...answers,
    };
    this.#page = new MockPage(async (full, args) => {
      const command = full.slice(PREFIX.length);
      this.calls.push({ command, args });
      const channel = /^__CHANNEL__:(\d+)$/.exec(String(args['onEvent']));
      if (channel) this.channels.push(Number(channel[1]));
      const answer = all[command];
      if (!answer) throw `Command ${full} not found`;
      return answer(args);
    });
  }

  /** Arguments of each call of one command. */
  of(command: string): Record<string, unknown>[] {
    return this.calls.filter((call) => call.command === command).map((call) => call.args);
  }

  /** Sends messages through the page's nth channel, in order. */
  push(channel: number, ...events: ChannelMessage[]): void {
    for (const event of events) this.pushAs(channel, this.skip(channel), event);
  }

  /** Takes the next message number of a channel without sending anything: a lost message. */
  skip(channel: number): number {
    const index = this.#indices.get(channel) ?? 0;
    this.#indices.set(channel, index + 1);
    return index;
  }

  /** Sends a message under a number of its own: out of order, or again. */
  pushAs(channel: number, index: number, event: ChannelMessage): void {
    const id = this.channels[channel];
    if (id === undefined) throw new Error(`the page has opened no channel ${channel}`);
    this.#page.send(id, { index, message: event });
  }

  remove(): void {
    this.#page.remove();
  }
}

/** An event of turn `t` of session `s`. */
export function event(sequence: number, kind: AgentEventKind, turnId = 't'): AgentEvent {
  return { sessionId: 's', turnId, timestamp: 1_000 + sequence, sequence, ...kind };
}

/** A sign of life of turn `t`: everything up to `sequence` was sent. */
export function heartbeat(sequence: number, turnId = 't'): Heartbeat {
  return { type: 'heartbeat', sessionId: 's', turnId, timestamp: 1_000 + sequence, sequence };
}

export function started(sequence: number, turnId = 't'): AgentEvent {
  return event(sequence, { type: 'turnStarted' }, turnId);
}

/** A text delta that covers the numbers `first` to `sequence`. */
export function text(delta: string, sequence: number, first = sequence, step = 0): AgentEvent {
  return event(sequence, { type: 'textDelta', step, delta, firstSequence: first });
}

export function reasoning(delta: string, sequence: number, first = sequence, step = 0): AgentEvent {
  return event(sequence, { type: 'reasoningDelta', step, delta, firstSequence: first });
}

export function completed(sequence: number, assistantOutput = '', turnId = 't'): AgentEvent {
  return event(
    sequence,
    {
      type: 'turnComplete',
      status: 'completed',
      assistantOutput,
      usage: { inputTokens: 1, outputTokens: 2 },
      sessionUsage: { inputTokens: 1, outputTokens: 2 },
      contextTokens: 3,
      contextWindow: 100,
    },
    turnId,
  );
}

export function failed(sequence: number, message = 'no'): AgentEvent {
  return event(sequence, {
    type: 'turnComplete',
    status: 'failed',
    error: { code: 'PROVIDER_ERROR', message, retryable: true, source: 'provider', retryAfterMs: 5_000 },
    assistantOutput: '',
    usage: {},
    sessionUsage: {},
    contextTokens: 3,
    contextWindow: 100,
  });
}

export function cancelled(sequence: number): AgentEvent {
  return event(sequence, { type: 'turnCancelled', usage: { outputTokens: 1 } });
}

export function outcome(status: TurnOutcome['status'], lastSequence: number, more: Partial<TurnOutcome> = {}): TurnOutcome {
  return { turnId: 't', status, lastSequence, assistantOutput: '', usage: {}, ...more };
}

/** The text of all text deltas, joined. */
export function words(events: AgentEvent[]): string {
  return events.map((item) => (item.type === 'textDelta' ? item.delta : '')).join('');
}

/** Lets everything run that only waits for promises. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
}
