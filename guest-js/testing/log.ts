/**
 * Numbered events and who is subscribed to them: what a page attaches to.
 */

import type { AgentEvent, AgentEventKind } from '../bindings.js';
import { isTerminal } from '../sequence.js';
import type { MockPage } from './page.js';
import type { MockScript } from './script.js';

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

  /** Whether a subscription exists. */
  has(id: number): boolean {
    return this.#subscriptions.has(id);
  }

  /** How many subscriptions there are. */
  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  /** Subscribes a channel and replays what comes after `after`; `null`: nothing. */
  subscribe(channel: number, sessionId: string, options: { turnId?: string; after: number | null }): number {
    const id = this.#nextSubscription++;
    const { turnId, after } = options;
    const subscription: Subscription = { id, channel, sessionId, index: 0, live: false, ...(turnId ? { turnId } : {}) };
    this.#subscriptions.set(id, subscription);
    const from = after ?? this.#sequence;
    // The reply to the command comes first, and messages in tasks of their own, as in Tauri.
    setTimeout(() => {
      for (const event of this.#events) if (event.sequence > from) this.#send(subscription, event);
      subscription.live = true;
    }, 0);
    return id;
  }

  /** Ends a subscription. */
  unsubscribe(id: number): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return;
    this.#subscriptions.delete(id);
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
    this.#subscriptions.clear();
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
    if (subscription.turnId !== undefined && event.turnId !== subscription.turnId) return;
    const message = { index: subscription.index++, message: event };
    const delivery = this.#transport(event, subscription.id);
    if (delivery === 'deliver') this.#page.send(subscription.channel, message);
    else if (delivery !== 'lose') {
      setTimeout(() => this.#page.send(subscription.channel, message), delivery.delayMs);
    }
    if (subscription.turnId !== undefined && isTerminal(event)) this.unsubscribe(subscription.id);
  }

  /** Keeps the events of the newest turns only. */
  keepTurns(turnIds: ReadonlySet<string>): void {
    this.#events = this.#events.filter((event) => turnIds.has(event.turnId));
  }
}
