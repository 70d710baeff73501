/**
 * Numbered events and who is subscribed to them: what a page attaches to.
 */

import type { AgentEvent, AgentEventKind, ChannelMessage } from '../bindings.js';
import { isTerminal } from '../sequence.js';
import type { MockPage } from './page.js';
import { refuse, type MockScript } from './script.js';

/** Silence of a running turn, in milliseconds, after which a page that acknowledges gets a heartbeat. */
const HEARTBEAT_MS = 1_000;

/** Most subscriptions of the page. */
const MAX_SUBSCRIPTIONS = 1_024;

interface Subscription {
  id: number;
  channel: number;
  sessionId: string;
  /** Only this turn, and only until its end; absent: everything until `detach`. */
  turnId?: string;
  /** Index of the channel's next message. */
  index: number;
  /** Whether what was missed is sent, so that events go out as they come. */
  live: boolean;
  /** Whether the page has ever acknowledged. */
  isAcknowledged: boolean;
  /** The turn that runs, and the newest event of it that was sent or that the page has. */
  running: { turnId: string; sequence: number } | null;
  /** Sends the next heartbeat. */
  heart: ReturnType<typeof setTimeout> | null;
}

/** What is subscribed to. */
export interface Wanted {
  /** Only this turn; absent: all turns of the session. */
  turnId?: string;
  /** What comes after this number; `null`: from now on. */
  after: number | null;
  /** The turn that runs. */
  runningTurnId: string | null;
}

/** All events of the mock agent, and the subscriptions to them. */
export class MockLog {
  readonly #page: MockPage;
  readonly #transport: NonNullable<MockScript['transport']>;
  readonly #subscriptions = new Map<number, Subscription>();
  #events: AgentEvent[] = [];
  #nextSubscription = 1;
  #sequence = 0;

  constructor(page: MockPage, transport: MockScript['transport']) {
    this.#page = page;
    this.#transport = transport ?? (() => 'deliver');
  }

  /** Number of the newest event. */
  get lastSequence(): number {
    return this.#sequence;
  }

  /** Takes an acknowledgement; says whether the subscription exists. */
  acknowledge(id: number): boolean {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return false;
    subscription.isAcknowledged = true;
    return true;
  }

  /** How many subscriptions there are. */
  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  /** Refuses one subscription too many. */
  checkRoom(): void {
    if (this.#subscriptions.size < MAX_SUBSCRIPTIONS) return;
    refuse('INVALID_INPUT', `this page has ${MAX_SUBSCRIPTIONS} open subscriptions; detach those it does not need`);
  }

  /** Subscribes a channel, and replays what it lacks. */
  subscribe(channel: number, sessionId: string, { turnId, after, runningTurnId }: Wanted): number {
    const id = this.#nextSubscription++;
    const from = Math.min(after ?? this.#sequence, this.#sequence);
    const subscription: Subscription = {
      id,
      channel,
      sessionId,
      index: 0,
      live: false,
      isAcknowledged: false,
      running: runningTurnId === null ? null : { turnId: runningTurnId, sequence: from },
      heart: null,
      ...(turnId ? { turnId } : {}),
    };
    this.#subscriptions.set(id, subscription);
    // The reply to the command comes first, and messages in tasks of their own, as in Tauri.
    setTimeout(() => {
      for (const event of this.#events) if (event.sequence > from) this.#send(subscription, event);
      subscription.live = true;
      this.#beatLater(subscription);
    }, 0);
    return id;
  }

  /** Ends a subscription. */
  unsubscribe(id: number): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return;
    this.#forget(subscription);
    this.#page.send(subscription.channel, { index: subscription.index, end: true });
  }

  /** Ends what is subscribed to a session; what is subscribed to a turn ends with that. */
  closeSession(sessionId: string): void {
    for (const { id, sessionId: of, turnId } of [...this.#subscriptions.values()]) {
      if (of === sessionId && turnId === undefined) this.unsubscribe(id);
    }
  }

  /** Forgets all subscriptions without a word, as when the agent finds that a page is gone. */
  dropAll(): void {
    for (const subscription of [...this.#subscriptions.values()]) this.#forget(subscription);
  }

  /** Numbers an event and sends it to everyone. */
  append(sessionId: string, turnId: string, kind: AgentEventKind): AgentEvent {
    const sequence = ++this.#sequence;
    const event = {
      sessionId,
      turnId,
      timestamp: Date.now(),
      sequence,
      ...kind,
      ...('firstSequence' in kind ? { firstSequence: sequence } : {}),
    } as AgentEvent;
    this.#events.push(event);
    for (const subscription of [...this.#subscriptions.values()]) {
      if (subscription.live) this.#send(subscription, event);
    }
    return event;
  }

  #send(subscription: Subscription, event: AgentEvent): void {
    if (event.sessionId !== subscription.sessionId || !this.#subscriptions.has(subscription.id)) return;
    const { turnId, sequence } = event;
    if (subscription.turnId !== undefined && turnId !== subscription.turnId) return;
    this.#transfer(subscription, event);
    subscription.running = isTerminal(event) ? null : { turnId, sequence };
    if (subscription.turnId !== undefined && isTerminal(event)) this.unsubscribe(subscription.id);
    else this.#beatLater(subscription);
  }

  #transfer(subscription: Subscription, content: ChannelMessage): void {
    const message = { index: subscription.index++, message: content };
    const delivery = this.#transport(content, subscription.id);
    if (delivery === 'deliver') this.#page.send(subscription.channel, message);
    else if (delivery !== 'lose') {
      setTimeout(() => this.#page.send(subscription.channel, message), delivery.delayMs);
    }
  }

  /** Sends a heartbeat after a second of silence, and again, as long as the turn runs. */
  #beatLater(subscription: Subscription): void {
    if (subscription.heart !== null) clearTimeout(subscription.heart);
    subscription.heart = null;
    if (subscription.running === null || !this.#subscriptions.has(subscription.id)) return;
    subscription.heart = setTimeout(() => {
      const { sessionId, running, isAcknowledged } = subscription;
      if (running && isAcknowledged) {
        this.#transfer(subscription, { type: 'heartbeat', sessionId, timestamp: Date.now(), ...running });
      }
      this.#beatLater(subscription);
    }, HEARTBEAT_MS);
  }

  #forget(subscription: Subscription): void {
    if (subscription.heart !== null) clearTimeout(subscription.heart);
    this.#subscriptions.delete(subscription.id);
  }

  /** Keeps the events of the newest turns only. */
  keepTurns(turnIds: ReadonlySet<string>): void {
    this.#events = this.#events.filter((event) => turnIds.has(event.turnId));
  }
}
