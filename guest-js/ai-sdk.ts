/**
 * The agent behind the chat hooks of the Vercel AI SDK 7.
 *
 * `useChat` of React, Vue, Svelte and Angular, and every component library on top of it,
 * takes {@link AgentChatTransport} as its transport. The agent owns the conversation: only
 * the newest user message is sent.
 *
 * ```tsx
 * import { useChat } from '@ai-sdk/react';
 * import { AgentChatTransport } from 'tauri-plugin-youyou-agent-api/ai-sdk';
 *
 * const transport = new AgentChatTransport();
 * const { messages, sendMessage, stop } = useChat({ transport, resume: true });
 * ```
 *
 * @packageDocumentation
 */

import type {
  ChatTransport,
  UIMessage,
  UIMessageChunk,
} from 'ai' with { 'resolution-mode': 'import' };
import { contentOf, refused } from './ai-sdk/content.js';
import { toUIMessageStream } from './ai-sdk/stream.js';
import { createSession, currentSession } from './client.js';
import type { AgentError } from './error.js';
import type { SendOptions, Session } from './session.js';
import type { Turn } from './turn.js';

export { toUIMessages, type ToUIMessagesOptions } from './ai-sdk/history.js';
export { toUIMessageStream } from './ai-sdk/stream.js';

/** How an {@link AgentChatTransport} finds its session, and how it sends. */
export interface AgentChatTransportOptions {
  /**
   * The session, or how to get it for a chat id. Absent: the open session, or a new one if
   * none is open.
   */
  session?: Session | ((chatId: string) => Session | Promise<Session>) | undefined;
  /**
   * What every message is sent with. A message's own options come from the `body` of
   * `sendMessage(message, { body: { modelId, temperature, maxTokens, reasoningEffort } })`.
   */
  sendOptions?: Omit<SendOptions, 'signal'> | undefined;
}

/**
 * A transport of the AI SDK that speaks to the agent.
 *
 * - Sending sends the last user message; regenerating runs it again after a failed or
 *   cancelled turn, or sends it again if it was refused. An older one is refused with
 *   `INVALID_INPUT`: the agent's history only grows.
 * - `stop()` cancels the turn.
 * - Resuming attaches to the running turn and replays it from its start.
 * - A refused or failed turn fails the stream with the agent's {@link AgentError}, so that
 *   `onError` and `error` of the hook carry its `code`.
 */
export class AgentChatTransport<MESSAGE extends UIMessage = UIMessage> implements ChatTransport<MESSAGE> {
  /** Resuming replays the turn from its start; the SDK starts the message anew. */
  readonly resumeStreamIsReplay = true;
  readonly #session: AgentChatTransportOptions['session'];
  readonly #sendOptions: Omit<SendOptions, 'signal'>;
  #opening: Promise<Session> | null = null;
  /** The newest message that was sent, and its newest turn. */
  #newest: { chatId: string; messageId: string | undefined; turn: Turn; signal: AbortSignal | undefined } | null = null;
  /** The newest attempt to resume. */
  #resuming: { chatId: string } | null = null;

  constructor(options: AgentChatTransportOptions = {}) {
    this.#session = options.session;
    this.#sendOptions = options.sendOptions ?? {};
  }

  /** Sends the last message of a chat, or runs it again. Called by the SDK. */
  async sendMessages(
    options: Parameters<ChatTransport<MESSAGE>['sendMessages']>[0],
  ): Promise<ReadableStream<UIMessageChunk>> {
    const { trigger, chatId, messages, abortSignal: signal, body } = options;
    const message = messages.at(-1);
    if (trigger === 'submit-message' && message?.role !== 'user') {
      throw refused('the last message is not the user\'s; tools run in the agent, so there is nothing to send back');
    }
    const newest = this.#newest?.chatId === chatId ? this.#newest : null;
    if (trigger === 'regenerate-message' && newest && newest.messageId !== message?.id) {
      throw refused('only the newest message can be run again; send the older one as a new message');
    }
    const sends = trigger === 'submit-message' || (newest?.turn.id === null && message?.role === 'user');
    const content = sends && message ? contentOf(message) : null;
    const session = (await this.#find(chatId)) ?? (await this.#create());
    await this.#untilStopped(signal);
    const turn =
      content === null
        ? session.retry({ signal })
        : session.send(content, { ...this.#sendOptions, ...sendOptionsOf(body), signal });
    this.#newest = { chatId, messageId: message?.id, turn, signal };
    return toUIMessageStream(turn);
  }

  /** The SDK is ready as soon as it stopped a turn; the agent is when a running tool has ended, too. */
  async #untilStopped(signal: AbortSignal | undefined): Promise<void> {
    if (!this.#newest?.signal?.aborted || signal?.aborted) return;
    const ended = this.#newest.turn.result().then(
      () => undefined,
      () => undefined,
    );
    let aborted = (): void => undefined;
    const stopped = new Promise<void>((resolve) => {
      aborted = resolve;
      signal?.addEventListener('abort', aborted, { once: true });
    });
    await Promise.race([ended, stopped]);
    signal?.removeEventListener('abort', aborted);
  }

  /** Attaches to the running turn of a chat, if there is one. Called by the SDK. */
  async reconnectToStream(
    options: Parameters<ChatTransport<MESSAGE>['reconnectToStream']>[0],
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId, abortSignal } = options;
    const attempt = { chatId };
    this.#resuming = attempt;
    const stop = new AbortController();
    const stopped = (): void => {
      // The SDK gives up a resume also for a newer one, which it begins in the same task:
      // that is no wish to stop the turn.
      queueMicrotask(() => {
        const isReplaced = this.#resuming !== attempt && this.#resuming?.chatId === chatId;
        if (!isReplaced) stop.abort();
      });
    };
    if (abortSignal?.aborted) stopped();
    else abortSignal?.addEventListener('abort', stopped, { once: true });
    const session = await this.#find(chatId);
    const turn = await session?.activeTurn({ signal: stop.signal });
    return turn ? toUIMessageStream(turn) : null;
  }

  async #find(chatId: string): Promise<Session | null> {
    if (typeof this.#session === 'function') return this.#session(chatId);
    return this.#session ?? currentSession();
  }

  /** One session, also for two chats that begin at the same moment. */
  #create(): Promise<Session> {
    this.#opening ??= createSession().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }
}

/** The options of the agent in a request's body; whatever else is in it is not for the agent. */
function sendOptionsOf(body: object | undefined): Omit<SendOptions, 'signal'> {
  const { modelId, temperature, maxTokens, reasoningEffort } = (body ?? {}) as SendOptions;
  return Object.fromEntries(
    Object.entries({ modelId, temperature, maxTokens, reasoningEffort }).filter(([, value]) => value !== undefined),
  );
}
