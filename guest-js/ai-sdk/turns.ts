/**
 * What is known of a chat of the AI SDK between two calls of its transport.
 */

import type { Turn } from '../turn.js';

/** How many chats are remembered. One session is open at a time, so few are in use. */
const CHATS_KEPT = 32;

/** By chat id, not by transport: a component may make a transport with every rendering. */
const chats = new Map<string, ChatTurns>();

/** The turns of one chat. */
export class ChatTurns {
  /** The newest message that was sent, and its newest turn. */
  newest: { messageId: string | undefined; turn: Turn } | null = null;
  /** The newest attempt to resume. */
  resuming: object | null = null;
  /** Turns that were stopped and have not ended. */
  readonly #stopped = new Set<Turn>();

  /** What is known of a chat. */
  static of(chatId: string): ChatTurns {
    const chat = chats.get(chatId) ?? new ChatTurns();
    chats.delete(chatId);
    chats.set(chatId, chat);
    for (const oldest of [...chats.keys()].slice(0, -CHATS_KEPT)) chats.delete(oldest);
    return chat;
  }

  /** Remembers a turn that its signal stops, until it has ended. */
  follow(turn: Turn, signal: AbortSignal | undefined): void {
    const stopped = (): void => void this.#stopped.add(turn);
    const ended = (): void => {
      this.#stopped.delete(turn);
      signal?.removeEventListener('abort', stopped);
    };
    signal?.addEventListener('abort', stopped, { once: true });
    if (signal?.aborted) stopped();
    turn.result().then(ended, ended);
  }

  /** The SDK is ready as soon as it stopped a turn; the agent is when a running tool has ended, too. */
  async untilStopped(signal: AbortSignal | undefined): Promise<void> {
    if (this.#stopped.size === 0 || signal?.aborted) return;
    const ended = Promise.allSettled([...this.#stopped].map((turn) => turn.result()));
    let aborted = (): void => undefined;
    const given = new Promise<void>((resolve) => {
      aborted = resolve;
      signal?.addEventListener('abort', aborted, { once: true });
    });
    await Promise.race([ended, given]);
    signal?.removeEventListener('abort', aborted);
  }
}
