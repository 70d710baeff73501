/**
 * One stream of events from the agent that repairs itself.
 *
 * Tauri's `Channel` holds back every message after one that was lost, for ever and in
 * silence. The agent never is silent while a turn runs: where it has no event to send, it
 * sends a heartbeat. So a feed that hears nothing knows that something is lost, and attaches
 * again after the last event it has. Whoever listens sees every event once and in order.
 */

import { Channel } from '@tauri-apps/api/core';
import {
  commands,
  type AgentEvent,
  type Attachment,
  type ChannelMessage,
  type Heartbeat,
  type SessionInfo,
} from './bindings.js';
import { settle } from './error.js';
import { Sequencer } from './sequence.js';

/** Silence during a turn, in milliseconds, after which something is lost: three heartbeats did not come. */
export const SILENCE_MS = 3_000;

/** Messages between two acknowledgements: half of the 32 that the agent leaves open. */
const ACK_EVERY = 16;

/** Above every number there is: attaching after it brings what comes from now on. */
const FROM_NOW_ON = Number.MAX_SAFE_INTEGER;

/** How long silence may last, and what it leads to. */
export interface Patience {
  /** Milliseconds without an event or a heartbeat. */
  ms: number;
  /** Attach again, or first ask the agent whether there is anything that did not arrive. */
  then: 'attach' | 'ask';
}

/** What a feed serves. */
export interface FeedTarget {
  /** Takes the next event: in order, each once. */
  deliver(event: AgentEvent): void;
  /** Whether a message belongs here at all. */
  accepts(message: ChannelMessage): boolean;
  /** How long silence may last now; `null` when nothing is awaited. */
  patience(): Patience | null;
  /** Whether the agent, asked for its open session, has events that did not arrive. */
  isBehind(info: SessionInfo | null, last: number | null): boolean;
  /** Told how many repairs in a row brought nothing; returns whether to attach once more. */
  persists(repairs: number): boolean;
}

/** A channel of the agent, and what came through it. */
interface Source {
  subscription: number | null;
  /** Messages since the last acknowledgement. */
  unacknowledged: number;
  /** Number of the newest event that came through; 0 before the first. */
  newest: number;
  /** Whether the agent ends the subscription by itself, with the turn. */
  endsWithTurn: boolean;
}

/** A stream of events that repairs itself. */
export class Feed {
  readonly #sessionId: string;
  readonly #target: FeedTarget;
  readonly #sequencer = new Sequencer();
  /** The one source that is listened to; what still comes from an older one is ignored. */
  #source: Source | null = null;
  /** Whether an attach is under way. */
  #attaching = false;
  /** Repairs in a row that brought nothing. */
  #fruitless = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(sessionId: string, target: FeedTarget) {
    this.#sessionId = sessionId;
    this.#target = target;
  }

  /** Opens the stream with a command that starts a turn. */
  start<T extends { subscription: number }>(command: (onEvent: Channel<ChannelMessage>) => Promise<T>): Promise<T> {
    return this.#open(command, true);
  }

  /** Opens the stream at the start of the running turn. */
  attachToRunningTurn(): Promise<Attachment> {
    return this.#attach(null);
  }

  /** Opens the stream with what comes from now on. */
  async attachFromNowOn(): Promise<Attachment> {
    const attachment = await this.#attach(FROM_NOW_ON);
    // Events may have been faster than the reply.
    this.#sequencer.last ??= attachment.lastSequence;
    return attachment;
  }

  /** Ends the stream; nothing is delivered after it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    // The channel of a message ends with its turn, by the agent's own hand.
    if (this.#source && !this.#source.endsWithTurn) detach(this.#source);
  }

  /** Begins to watch for silence anew. */
  watch(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const patience = this.#closed ? null : this.#target.patience();
    if (patience === null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (patience.then === 'attach') void this.#repair();
      else void this.#ask();
    }, patience.ms);
  }

  #attach(after: number | null): Promise<Attachment> {
    return this.#open((onEvent) => settle(commands.attach(this.#sessionId, after, onEvent)), false);
  }

  async #open<T extends { subscription: number }>(
    command: (onEvent: Channel<ChannelMessage>) => Promise<T>,
    endsWithTurn: boolean,
  ): Promise<T> {
    const previous = this.#source;
    const source: Source = { subscription: null, unacknowledged: 0, newest: 0, endsWithTurn };
    this.#source = source;
    // The handler is set before the command is called: an answer may be faster than its reply.
    const channel = new Channel<ChannelMessage>();
    channel.onmessage = (message) => this.#receive(source, message);
    try {
      const reply = await command(channel);
      source.subscription = reply.subscription;
      if (this.#source !== source || (this.#closed && !endsWithTurn)) detach(source);
      // The first acknowledgement asks for heartbeats, so it does not wait for an event.
      else if (!this.#closed) this.#acknowledge(source);
      if (previous) detach(previous);
      this.watch();
      return reply;
    } catch (error) {
      if (this.#source === source) this.#source = previous;
      throw error;
    }
  }

  #receive(source: Source, message: ChannelMessage): void {
    if (this.#closed || source !== this.#source) return;
    if (message.type === 'heartbeat') {
      this.#hear(message);
      return;
    }
    source.newest = Math.max(source.newest, message.sequence);
    source.unacknowledged += 1;
    if (source.unacknowledged >= ACK_EVERY) this.#acknowledge(source);
    if (!this.#target.accepts(message)) return;
    const fresh = this.#sequencer.take(message);
    if (fresh !== null) {
      this.#fruitless = 0;
      this.#target.deliver(fresh);
    }
    this.watch();
  }

  #hear(heartbeat: Heartbeat): void {
    if (!this.#target.accepts(heartbeat)) return;
    if (heartbeat.sequence <= (this.#sequencer.last ?? 0)) {
      this.#fruitless = 0;
      this.watch();
    } else if (this.#fruitless === 0) {
      void this.#repair();
    }
    // Where a repair has just brought nothing, the next one waits for its time.
  }

  #acknowledge(source: Source): void {
    if (source.subscription === null) return;
    source.unacknowledged = 0;
    // One that fails, or that the agent does not know any more, leads to silence.
    settle(commands.ack(source.subscription, source.newest)).catch(() => undefined);
  }

  async #ask(): Promise<void> {
    // Begun at once, so that a question that is never answered is no dead end.
    this.watch();
    const timer = this.#timer;
    let info: SessionInfo | null;
    try {
      info = await settle(commands.currentSession());
    } catch {
      return;
    }
    // Something arrived while the agent was asked: the watch has begun anew.
    if (this.#closed || this.#timer !== timer) return;
    if (this.#target.isBehind(info, this.#sequencer.last)) {
      await this.#repair();
    } else {
      this.#fruitless = 0;
      this.watch();
    }
  }

  async #repair(): Promise<void> {
    if (this.#closed) return;
    if (this.#fruitless > 0 && !this.#target.persists(this.#fruitless)) {
      this.#fruitless = 0;
      this.watch();
      return;
    }
    this.#fruitless += 1;
    // Begun at once, so that an attach that is never answered is no dead end.
    this.watch();
    if (this.#attaching) return;
    this.#attaching = true;
    try {
      // Without any event so far: from the beginning of what the agent still has.
      await this.#attach(this.#sequencer.last ?? 0);
    } catch {
      // A session that is gone has nothing to attach to: the target decides what that means.
    } finally {
      this.#attaching = false;
    }
  }
}

/** Ends a subscription that nobody listens to any more. */
function detach(source: Source): void {
  if (source.subscription === null) return;
  const { subscription } = source;
  source.subscription = null;
  settle(commands.detach(subscription)).catch(() => undefined);
}
