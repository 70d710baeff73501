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
import { contentOf } from './ai-sdk/content.js';
import { toUIMessageStream } from './ai-sdk/stream.js';
import { ChatTurns } from './ai-sdk/turns.js';
import { createSession, currentSession } from './client.js';
import { invalidInput, type AgentError } from './error.js';
import { defined } from './request.js';
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
   * `sendMessage(message, { body: { modelId, temperature, maxTokens, reasoningEffort, responseFormat } })`.
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
      throw invalidInput('the last message is not the user\'s; tools run in the agent, so there is nothing to send back');
    }
    const chat = ChatTurns.of(chatId);
    const open = await this.#find(chatId);
    const isOfSession = chat.newest?.turn.id === null || chat.newest?.turn.sessionId === open?.id;
    const newest = isOfSession ? chat.newest : null;
    if (trigger === 'regenerate-message' && newest && newest.messageId !== message?.id) {
      throw invalidInput('only the newest message can be run again; send the older one as a new message');
    }
    const sends = trigger === 'submit-message' || (newest?.turn.id === null && message?.role === 'user');
    const content = sends && message ? contentOf(message) : null;
    const session = open ?? (await this.#create());
    await chat.untilStopped(signal);
    const turn =
      content === null
        ? session.retry({ signal })
        : session.send(content, { ...this.#sendOptions, ...sendOptionsOf(body), signal });
    chat.follow(turn, signal);
    chat.newest = { messageId: message?.id, turn };
    return toUIMessageStream(turn);
  }

  /** Attaches to the running turn of a chat, if there is one. Called by the SDK. */
  async reconnectToStream(
    options: Parameters<ChatTransport<MESSAGE>['reconnectToStream']>[0],
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId, abortSignal } = options;
    const chat = ChatTurns.of(chatId);
    const attempt = {};
    chat.resuming = attempt;
    const stop = new AbortController();
    let turn: Turn | null | undefined;
    let isReplaced = false;
    const givenUp = (): void => {
      // The SDK gives up a resume also for a newer one, which it begins in the same task:
      // that is no wish to stop the turn.
      queueMicrotask(() => {
        isReplaced = chat.resuming !== attempt;
        if (isReplaced) turn?.leave();
        else stop.abort();
      });
    };
    abortSignal?.addEventListener('abort', givenUp, { once: true });
    if (abortSignal?.aborted) givenUp();
    const session = await this.#find(chatId);
    if (isReplaced) return null;
    turn = await session?.activeTurn({ signal: stop.signal });
    if (!turn) return null;
    if (isReplaced) turn.leave();
    chat.follow(turn, stop.signal);
    return toUIMessageStream(turn);
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
  const { modelId, temperature, maxTokens, reasoningEffort, responseFormat } = (body ?? {}) as SendOptions;
  return defined({ modelId, temperature, maxTokens, reasoningEffort, responseFormat });
}
