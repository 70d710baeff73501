/**
 * The AI SDK's chat as the tests use it: on our transport, without any framework.
 */

import { AbstractChat, type ChatState, type ChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { AgentChatTransport } from '../../guest-js/ai-sdk.js';

/** All chunks of a stream. */
export async function chunksOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** The SDK's own chat, without any framework around it. */
export class Chat extends AbstractChat<UIMessage> {
  constructor(
    messages: UIMessage[] = [],
    onError: (error: Error) => void = () => undefined,
    transport: ChatTransport<UIMessage> = new AgentChatTransport(),
  ) {
    const state: ChatState<UIMessage> = {
      status: 'ready',
      error: undefined,
      messages,
      pushMessage: (message) => {
        state.messages = [...state.messages, message];
      },
      popMessage: () => {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage: (index, message) => {
        state.messages = state.messages.with(index, message);
      },
      snapshot: structuredClone,
    };
    super({ state, transport, onError });
  }
}

/** Messages without what only the SDK's bookkeeping needs. */
export function plain(messages: UIMessage[]): unknown {
  return JSON.parse(JSON.stringify(messages.map(({ role, parts }) => ({ role, parts }))));
}
