/**
 * One stream of events from the agent that repairs itself.
 *
 * Tauri's `Channel` holds back every message after one that was lost, for ever and in
 * silence. While a turn runs the agent sends a heartbeat every second that brings nothing new:
 * a feed that hears neither attaches again after the last event it has; before the first
 * heartbeat it asks the agent how far it is. Whoever listens sees every event once and in order.
 */

import { Channel } from '@tauri-apps/api/core';
import { commands, type AgentEvent, type Attachment, type ChannelMessage, type SessionInfo } from './bindings.js';
import { settle } from './error.js';
import { firstSequenceOf, isTerminal, Sequencer } from './sequence.js';

/** Silence during a turn, in milliseconds, after which something may have been lost. */
export const SILENCE_MS = 2_000;

/** Messages between two acknowledgements: half of the 32 that the agent leaves open. */
const ACK_EVERY = 16;

/**
 * Silence, in milliseconds, after which a subscription that the agent does not know any more
 * is replaced. Not at once: the agent also forgets it when it has sent everything, and then
 * the rest is on its way.
 */
const DROPPED_SILENCE_MS = 250;

/** What a feed serves. */
export interface FeedTarget {
  /** Takes the next event: in order, each once. */
  deliver(event: AgentEvent): void;
  /** Whether an event belongs here at all. */
  accepts(event: AgentEvent): boolean;
  /** Milliseconds of silence after which something may be wrong; `null` when nothing is awaited. */
  patience(): number | null;
  /** Whether the agent has events that did not arrive; `info` is its open session. */
  isBehind(info: SessionInfo | null, last: number | null): boolean;
  /** Whether the end is known without the agent: then it need not answer to be given up. */
  knowsEnd(): boolean;
  /** Told after each repair that brought nothing, with how many there were in a row. */
  stuck(repairs: number, info: SessionInfo | null): void;
}

/** A channel of the agent, and what came through it. */
interface Source {
  subscription: number | null;
  /** Messages since the last acknowledgement. */
  unacknowledged: number;
  /** Number of the newest event that came through. */
  newest: number | null;
  /** Whether its first message follows the newest event known, whatever the numbers say. */
  startsHere: boolean;
  /** Whether the agent ends the subscription by itself, with the turn. */
  endsWithTurn: boolean;
  /** Whether the agent has said that it does not know the subscription any more. */
  dropped: boolean;
  /** Whether a heartbeat came through: then the agent tells of silence by itself. */
  beats: boolean;
}

/** A stream of events that repairs itself. */
export class Feed {
  readonly #sessionId: string;
  readonly #target: FeedTarget;
  readonly #sequencer = new Sequencer();
  /** The one source that is listened to; what still comes from an older one is ignored. */
  #source: Source | null = null;
  /** Events that arrived before one with a lower number, by number. */
  #held: AgentEvent[] = [];
  /** Whether a turn has begun and not ended, so that its numbers follow each other. */
  #insideTurn = false;
  /** Whether the agent was seen to leave numbers out within a turn. */
  #numbersHaveGaps = false;
  #repairing = false;
  #fruitless = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  constructor(sessionId: string, target: FeedTarget) {
    this.#sessionId = sessionId;
    this.#target = target;
  }

  /** Opens the stream with a command that starts a turn. */
  start<T extends { subscription: number }>(command: (onEvent: Channel<ChannelMessage>) => Promise<T>): Promise<T> {
    return this.#open(command, { startsHere: false, endsWithTurn: true });
  }

  /** Opens the stream at the start of the running turn. */
  attachToRunningTurn(): Promise<Attachment> {
    return this.#attach(null);
  }

  /** Opens the stream after an event: what came since then comes first. */
  attachAfter(sequence: number): Promise<Attachment> {
    this.#sequencer.last = sequence;
    return this.#attach(sequence);
  }

  /** Ends the stream; nothing is delivered after it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#held = [];
    // The channel of a message ends with its turn, by the agent's own hand.
    if (this.#source && !this.#source.endsWithTurn) detach(this.#source);
  }

  /** Begins to watch for silence, when the target has come to await something. */
  watch(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const patience = this.#closed ? null : this.#target.patience();
    if (patience === null) return;
    const silence = this.#source?.dropped && this.#fruitless === 0 ? DROPPED_SILENCE_MS : patience;
    this.#timer = setTimeout(() => void this.#check(), silence);
  }

  #attach(after: number | null): Promise<Attachment> {
    return this.#open((onEvent) => settle(commands.attach(this.#sessionId, after, onEvent)), {
      startsHere: true,
      endsWithTurn: false,
    });
  }

  async #open<T extends { subscription: number }>(
    command: (onEvent: Channel<ChannelMessage>) => Promise<T>,
    kind: Pick<Source, 'startsHere' | 'endsWithTurn'>,
  ): Promise<T> {
    const previous = this.#source;
    const source: Source = { subscription: null, unacknowledged: 0, newest: null, dropped: false, beats: false, ...kind };
    this.#source = source;
    // The handler is set before the command is called: an answer may be faster than its reply.
    const channel = new Channel<ChannelMessage>();
    channel.onmessage = (message) => {
      if (message.type === 'heartbeat') this.#beat(source);
      else this.#receive(source, message);
    };
    try {
      const reply = await command(channel);
      source.subscription = reply.subscription;
      if (this.#source !== source || (this.#closed && !source.endsWithTurn)) detach(source);
      else if (source.unacknowledged > 0) this.#acknowledge(source);
      if (previous) detach(previous);
      this.watch();
      return reply;
    } catch (error) {
      if (this.#source === source) this.#source = previous;
      // What the agent said of it counted for this attempt: the next one asks anew.
      if (previous) previous.dropped = false;
      throw error;
    }
  }

  /** The channel works, and there is nothing new. */
  #beat(source: Source): void {
    if (this.#closed || source !== this.#source) return;
    source.beats = true;
    this.watch();
  }

  #receive(source: Source, event: AgentEvent): void {
    if (this.#closed || source !== this.#source) return;
    source.newest = Math.max(source.newest ?? 0, event.sequence);
    source.unacknowledged += 1;
    if (source.unacknowledged >= ACK_EVERY) this.#acknowledge(source);
    if (this.#target.accepts(event)) this.#place(source, event);
    this.watch();
  }

  /** Delivers an event, or holds it until those before it are there. */
  #place(source: Source, event: AgentEvent): void {
    const first = firstSequenceOf(event);
    if (source.startsHere) {
      source.startsHere = false;
      // The agent's own log says that nothing lies between: believe it from now on.
      if (this.#held.some((held) => firstSequenceOf(held) === first)) this.#numbersHaveGaps = true;
    } else if (!this.#follows(event, first)) {
      this.#held.push(event);
      this.#held.sort((a, b) => firstSequenceOf(a) - firstSequenceOf(b));
      return;
    }
    this.#deliver(event);
    while (!this.#closed) {
      const next = this.#held[0];
      if (next === undefined || !this.#follows(next, firstSequenceOf(next))) break;
      this.#held.shift();
      this.#deliver(next);
    }
  }

  #follows(event: AgentEvent, first: number): boolean {
    const { last } = this.#sequencer;
    if (last === null) return event.type === 'turnStarted' || this.#numbersHaveGaps;
    return first <= last + 1 || !this.#insideTurn || this.#numbersHaveGaps;
  }

  #deliver(event: AgentEvent): void {
    const fresh = this.#sequencer.take(event);
    if (fresh === null) return;
    this.#fruitless = 0;
    this.#insideTurn = !isTerminal(fresh);
    this.#target.deliver(fresh);
  }

  #acknowledge(source: Source): void {
    if (source.subscription === null || source.newest === null) return;
    source.unacknowledged = 0;
    settle(commands.ack(source.subscription, source.newest)).then(
      (known) => {
        if (known || source !== this.#source) return;
        source.dropped = true;
        this.watch();
      },
      // An acknowledgement that fails only slows the stream down; the watch sees to the rest.
      () => undefined,
    );
  }

  async #check(): Promise<void> {
    this.#timer = null;
    if (this.#source?.dropped) return this.#repair(null);
    // The agent would have sent a heartbeat: what it sends does not arrive.
    if (this.#source?.beats && this.#insideTurn) return this.#repair(null);
    let info: SessionInfo | null = null;
    try {
      info = await settle(commands.currentSession());
    } catch {
      if (!this.#target.knowsEnd()) {
        this.watch();
        return;
      }
    }
    if (this.#closed) return;
    // Something arrived while the agent was asked: the watch has begun anew.
    if (this.#timer !== null) return;
    if (this.#held.length > 0 || this.#target.isBehind(info, this.#sequencer.last)) await this.#repair(info);
    else this.watch();
  }

  async #repair(info: SessionInfo | null): Promise<void> {
    if (this.#repairing || this.#closed) return;
    this.#repairing = true;
    if (this.#fruitless > 0) this.#target.stuck(this.#fruitless, info);
    this.#fruitless += 1;
    try {
      // Without any event so far: from the beginning of what the agent still has.
      if (!this.#closed) await this.#attach(this.#sequencer.last ?? 0);
    } catch {
      // A session that is gone has nothing to attach to: the target decides by the outcome.
    } finally {
      this.#repairing = false;
      this.watch();
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
