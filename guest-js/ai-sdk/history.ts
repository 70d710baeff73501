/**
 * From a session's stored events to messages of the AI SDK.
 */

import type { DynamicToolUIPart, ReasoningUIPart, TextUIPart, UIMessage } from 'ai' with { 'resolution-mode': 'import' };
import type { AssistantPart, SessionEvent } from '../bindings.js';
import { partsOf } from './content.js';

/** What {@link toUIMessages} should know. */
export interface ToUIMessagesOptions {
  /**
   * The turn that runs right now, if one does: its answer is left out, because resuming the
   * stream replays it whole. See `SessionInfo.turnId`.
   */
  runningTurnId?: string | null | undefined;
}

/**
 * The messages of a stored session, for the `messages` of a chat hook.
 *
 * Everything the agent did in one turn is one assistant message whose id is the turn's, the
 * same as when it was streamed.
 *
 * @param events stored events in order, all pages of `session.history({ withImages: true })`
 *   one after another; without `withImages` pictures have an empty URL.
 */
export function toUIMessages(events: readonly SessionEvent[], options: ToUIMessagesOptions = {}): UIMessage[] {
  const messages: UIMessage[] = [];
  const tools = new Map<string, DynamicToolUIPart>();
  for (const event of events) {
    if (event.type === 'userMessage') {
      messages.push({ id: `user-${event.index}`, role: 'user', parts: partsOf(event.content) });
    } else if (event.type === 'assistantMessage' && event.turnId !== options.runningTurnId) {
      const message = answerOf(messages, event);
      message.parts.push({ type: 'step-start' });
      for (const part of event.parts) {
        // A block without text only carries opaque data of the provider.
        if (part.type === 'reasoning' && part.text === '') continue;
        const shown = shownPart(part);
        if (shown.type === 'dynamic-tool') tools.set(shown.toolCallId, shown);
        message.parts.push(shown);
      }
    } else if (event.type === 'toolCall') {
      // The assistant's message has the model's own arguments; the call those really used.
      const tool = tools.get(event.callId);
      if (tool) tool.input = event.arguments;
    } else if (event.type === 'toolResult') {
      const tool = tools.get(event.callId);
      if (tool) settle(tool, event);
    }
  }
  return messages;
}

/** The message of the event's turn: the last one, or a new one. */
function answerOf(messages: UIMessage[], event: SessionEvent): UIMessage {
  const last = messages.at(-1);
  if (last?.role === 'assistant' && last.id === event.turnId) return last;
  const message: UIMessage = { id: event.turnId, role: 'assistant', parts: [] };
  messages.push(message);
  return message;
}

type ShownPart = TextUIPart | ReasoningUIPart | DynamicToolUIPart;

function settle(tool: DynamicToolUIPart, result: Extract<SessionEvent, { type: 'toolResult' }>): void {
  if (result.isError) {
    Object.assign(tool, { state: 'output-error', errorText: result.output });
    return;
  }
  Object.assign(tool, { state: 'output-available', output: result.output });
  delete tool.errorText;
}

function shownPart(part: AssistantPart): ShownPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, state: 'done' };
    case 'reasoning':
      return { type: 'reasoning', text: part.text, state: 'done' };
    case 'toolCall':
      return {
        type: 'dynamic-tool',
        toolCallId: part.callId,
        toolName: part.toolName,
        providerExecuted: true,
        // Until its result is found further on.
        state: 'output-error',
        input: part.arguments,
        errorText: 'The call has no stored result.',
      };
  }
}
