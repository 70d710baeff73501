/**
 * From events of the agent to the chunks of the AI SDK.
 */

import type { FinishReason, UIMessageChunk } from 'ai' with { 'resolution-mode': 'import' };
import type { AgentEvent, StopReason } from '../bindings.js';

/**
 * The stream of the AI SDK for a turn.
 *
 * Tool calls are dynamic and executed by the provider, as the SDK calls tools it does not
 * run itself. A failed turn fails the stream with its error; a cancelled one ends with an
 * `abort` chunk. An answer that was cut finishes with `length`, `content-filter` or `other`. Cancelling the stream only stops listening.
 *
 * @param events a {@link Turn}, or any other source of one turn's events in order.
 */
export function toUIMessageStream(events: AsyncIterable<AgentEvent>): ReadableStream<UIMessageChunk> {
  const reader = events[Symbol.asyncIterator]();
  const writer = new ChunkWriter();
  let left = false;
  return new ReadableStream<UIMessageChunk>({
    async pull(controller) {
      try {
        // An event may have no counterpart; a pull ends with a chunk or the end.
        for (let wrote = false; !wrote; ) {
          const { done, value } = await reader.next();
          if (left) return;
          if (done) {
            controller.close();
            return;
          }
          for (const chunk of writer.write(value)) {
            controller.enqueue(chunk);
            wrote = true;
          }
        }
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      left = true;
      await reader.return?.();
    },
  });
}

/** Keeps what the SDK wants opened and closed: message, steps, texts. */
class ChunkWriter {
  #started = false;
  #step: number | null = null;
  #open: { type: 'text' | 'reasoning'; id: string } | null = null;
  readonly #calls = new Set<string>();

  *write(event: AgentEvent): Generator<UIMessageChunk> {
    if (!this.#started) {
      this.#started = true;
      yield { type: 'start', messageId: event.turnId };
    }
    switch (event.type) {
      case 'textDelta':
        yield* this.#write('text', event.step, event.sequence, event.delta);
        break;
      case 'reasoningDelta':
        yield* this.#write('reasoning', event.step, event.sequence, event.delta);
        break;
      case 'toolCallStart':
        yield* this.#enter(event.step);
        yield* this.#close();
        yield* this.#call(event.callId, event.toolName, event.arguments);
        break;
      case 'toolCallEnd':
        yield* this.#enter(event.step);
        if (!this.#calls.has(event.callId)) yield* this.#call(event.callId, event.toolName, {});
        yield event.success
          ? { type: 'tool-output-available', toolCallId: event.callId, output: event.output, ...TOOL }
          : { type: 'tool-output-error', toolCallId: event.callId, errorText: event.output, ...TOOL };
        break;
      case 'turnComplete':
        // A failed turn throws right after this event; its parts stay as they are.
        if (event.status === 'failed') break;
        yield* this.#leave();
        yield { type: 'finish', finishReason: finishReasonOf(event.stopReason) };
        break;
      case 'turnCancelled':
        yield* this.#leave();
        yield { type: 'abort' };
        break;
      default:
        // Progress, retries, warnings, compactions and skipped turns have no counterpart in the SDK.
        break;
    }
  }

  *#write(type: 'text' | 'reasoning', step: number, sequence: number, delta: string): Generator<UIMessageChunk> {
    if (delta === '') return;
    yield* this.#enter(step);
    if (this.#open?.type !== type) {
      yield* this.#close();
      this.#open = { type, id: `${type}-${sequence}` };
      yield { type: `${type}-start`, id: this.#open.id };
    }
    yield { type: `${type}-delta`, id: this.#open.id, delta };
  }

  *#call(toolCallId: string, toolName: string, input: unknown): Generator<UIMessageChunk> {
    this.#calls.add(toolCallId);
    yield { type: 'tool-input-available', toolCallId, toolName, input, ...TOOL };
  }

  *#enter(step: number): Generator<UIMessageChunk> {
    if (this.#step === step) return;
    yield* this.#leave();
    this.#step = step;
    yield { type: 'start-step' };
  }

  *#leave(): Generator<UIMessageChunk> {
    yield* this.#close();
    if (this.#step !== null) yield { type: 'finish-step' };
    this.#step = null;
  }

  *#close(): Generator<UIMessageChunk> {
    if (this.#open) yield { type: `${this.#open.type}-end`, id: this.#open.id };
    this.#open = null;
  }
}

const TOOL = { dynamic: true, providerExecuted: true } as const;

/** Why the model stopped, in the words of the SDK; a provider that said nothing came to an end. */
function finishReasonOf(reason: StopReason | null | undefined): FinishReason {
  switch (reason ?? 'endTurn') {
    case 'endTurn':
      return 'stop';
    case 'length':
      return 'length';
    case 'contentFilter':
      return 'content-filter';
    default:
      // A refusal, and whatever a newer agent may say.
      return 'other';
  }
}
