/**
 * Runs the steps of one scripted turn.
 */

import type {
  AgentError as AgentErrorData,
  AgentEventKind,
  AssistantPart,
  Interruption,
  JsonValue,
  StopReason,
  Usage,
} from '../bindings.js';
import { errorOf, type MockScript, type MockStep } from './script.js';

type ToolStep = Extract<MockStep, { tool: string }>;

/** What a running turn can do to the agent around it. */
export interface RunContext {
  emit(kind: AgentEventKind): void;
  storeAnswer(parts: AssistantPart[], end: AnswerEnd): void;
  /** What is stored where a turn ends without another word. */
  storeEnd(end: AnswerEnd): void;
  storeCall(callId: string, toolName: string, args: JsonValue): void;
  storeResult(callId: string, tool: ToolStep): void;
  /** Fulfilled when a hold is released. */
  released(): Promise<void>;
  /** Unique in its session. */
  newCallId(): string;
  script: MockScript;
}

/** Why an answer ended. */
export interface AnswerEnd {
  stopReason?: StopReason;
  interruption?: Interruption;
}

/** How a run ended. */
export type RunEnd =
  | { status: 'completed'; output: string; stopReason: StopReason }
  | { status: 'failed'; output: string; error: AgentErrorData }
  | { status: 'cancelled'; output: string };

/** One scripted turn while it runs. */
export class MockRun {
  readonly #context: RunContext;
  readonly #cancel = new AbortController();
  #step = 0;
  #parts: AssistantPart[] = [];

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Stops before the next step; a running tool is awaited. */
  cancel(): void {
    this.#cancel.abort();
  }

  /** Whether the run was told to stop. */
  get cancelled(): boolean {
    return this.#cancel.signal.aborted;
  }

  /** Runs all steps. */
  async run(steps: MockStep[]): Promise<RunEnd> {
    for (const step of steps) {
      if (this.cancelled) break;
      if (typeof step === 'object' && 'fail' in step) {
        const error = errorOf(step.fail);
        const output = this.#finishAnswer({ interruption: 'failed' });
        this.#context.emit({ type: 'error', error });
        return { status: 'failed', output, error };
      }
      if (typeof step === 'object' && 'stop' in step) return this.#complete(step.stop);
      await this.#take(step);
    }
    if (this.cancelled) return { status: 'cancelled', output: this.#finishAnswer({ interruption: 'cancelled' }) };
    return this.#complete('endTurn');
  }

  #complete(stopReason: StopReason): RunEnd {
    return { status: 'completed', output: this.#finishAnswer({ stopReason }), stopReason };
  }

  async #take(step: MockStep): Promise<void> {
    const { emit } = this.#context;
    if (typeof step === 'string') return this.#stream('text', step, {});
    if ('text' in step) return this.#stream('text', step.text, step);
    if ('reasoning' in step) return this.#stream('reasoning', step.reasoning, step);
    if ('tool' in step) return this.#callTools([step]);
    if ('tools' in step) return this.#callTools(step.tools);
    if ('delayMs' in step && !('retry' in step)) return this.#pause(step.delayMs);
    if ('hold' in step) return this.#untilCancelled(this.#context.released());
    if ('retry' in step) {
      const { attempt = 1, delayMs = 0 } = step;
      emit({ type: 'providerRetry', attempt, delayMs, error: errorOf(step.retry) });
      return this.#pause(delayMs);
    }
    if ('warning' in step) emit({ type: 'warning', message: step.warning, source: 'agent' });
    if ('compacted' in step) emit({ type: 'contextCompacted', method: 'summarized', ...step.compacted });
    if ('error' in step) emit({ type: 'error', error: errorOf(step.error) });
  }

  async #stream(
    kind: 'text' | 'reasoning',
    whole: string,
    pace: { pieceLength?: number; everyMs?: number },
  ): Promise<void> {
    const { script, emit } = this.#context;
    const length = Math.max(1, pace.pieceLength ?? script.pieceLength ?? 8);
    const everyMs = pace.everyMs ?? script.everyMs ?? 20;
    // By characters, not by UTF-16 units: a piece never ends inside one.
    const characters = Array.from(whole);
    for (let at = 0; at < characters.length; at += length) {
      if (everyMs > 0) await this.#pause(everyMs);
      if (this.cancelled) return;
      const delta = characters.slice(at, at + length).join('');
      const last = this.#parts.at(-1);
      if (last?.type === kind) last.text += delta;
      else this.#parts.push({ type: kind, text: delta });
      const type = kind === 'text' ? 'textDelta' : 'reasoningDelta';
      emit({ type, step: this.#step, delta, firstSequence: 0 });
    }
  }

  async #callTools(tools: ToolStep[]): Promise<void> {
    const calls = tools.map((tool) => ({ tool, callId: tool.callId ?? this.#context.newCallId() }));
    for (const { tool, callId } of calls) {
      this.#parts.push({ type: 'toolCall', callId, toolName: tool.tool, arguments: tool.arguments ?? {} });
    }
    this.#finishAnswer({ stopReason: 'endTurn' });
    await Promise.all(calls.map(({ tool, callId }) => this.#callTool(tool, callId)));
    this.#step += 1;
  }

  async #callTool(tool: ToolStep, callId: string): Promise<void> {
    const { emit } = this.#context;
    const step = this.#step;
    const args = tool.arguments ?? {};
    const progress = tool.progress ?? [];
    const durationMs = tool.durationMs ?? 0;
    this.#context.storeCall(callId, tool.tool, args);
    emit({ type: 'toolCallStart', step, callId, toolName: tool.tool, arguments: args });
    const pause = durationMs / (progress.length + 1);
    // A running tool is never interrupted, so these waits do not end on cancel.
    for (const message of progress) {
      await sleep(pause);
      emit({ type: 'toolProgress', callId, message });
    }
    await sleep(pause);
    this.#context.storeResult(callId, tool);
    emit({
      type: 'toolCallEnd',
      step,
      callId,
      toolName: tool.tool,
      output: tool.output ?? '',
      durationMs,
      success: tool.error === undefined,
      ...(tool.metadata !== undefined ? { metadata: tool.metadata } : {}),
      ...(tool.error !== undefined ? { error: tool.error } : {}),
    });
  }

  /** Stores what the model has said since the last call, and gives its text. */
  #finishAnswer(end: AnswerEnd): string {
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length > 0) this.#context.storeAnswer(parts, end);
    else this.#context.storeEnd(end);
    return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  }

  #pause(ms: number): Promise<void> {
    return this.#untilCancelled(sleep(ms));
  }

  #untilCancelled(waiting: Promise<void>): Promise<void> {
    const { signal } = this.#cancel;
    return new Promise((resolve) => {
      const done = (): void => resolve();
      signal.addEventListener('abort', done, { once: true });
      void waiting.then(() => {
        signal.removeEventListener('abort', done);
        resolve();
      });
    });
  }
}

/** What a turn of so many characters plausibly cost. */
export function plausibleUsage(inputLength: number, outputLength: number): Usage {
  return { inputTokens: 200 + Math.ceil(inputLength / 4), outputTokens: Math.max(1, Math.ceil(outputLength / 4)) };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
