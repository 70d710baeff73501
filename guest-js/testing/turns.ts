/**
 * The mock agent's turns: beginning, running, cancelling, remembering.
 */

import type { AgentEventKind, ContentBlock, StopReason, TurnOutcome, Usage } from '../bindings.js';
import type { MockLog } from './log.js';
import { MockRun, plausibleUsage, type RunContext, type RunEnd } from './run.js';
import { errorOf, refuse, type MockInput, type MockScript, type MockSessionEvent, type MockStep } from './script.js';
import { contextTokens, type MockStore, type StoredSession } from './store.js';

/** How many ended turns the agent remembers, for `attach` and `wait_turn`. */
const TURNS_KEPT = 8;

/** Reasons to stop that leave an answer which is not whole. */
const CUT: ReadonlySet<StopReason | undefined> = new Set<StopReason>(['length', 'contentFilter', 'refusal']);

/** A turn that runs. */
export interface RunningTurn {
  turnId: string;
  session: StoredSession;
  run: MockRun;
  /** Number of the newest event before it began. */
  startSequence: number;
  ended: Promise<TurnOutcome>;
}

/** All turns of the mock agent; at most one runs. */
export class MockTurns {
  /** The turn that runs. */
  running: RunningTurn | null = null;
  readonly #script: MockScript;
  readonly #store: MockStore;
  readonly #log: MockLog;
  readonly #outcomes = new Map<string, Promise<TurnOutcome>>();
  #turnCount = 0;
  #callCount = 0;
  #holding: (() => void)[] = [];

  constructor(script: MockScript, store: MockStore, log: MockLog) {
    this.#script = script;
    this.#store = store;
    this.#log = log;
  }

  /** Begins a turn, or refuses the message. */
  begin(session: StoredSession, blocks: ContentBlock[], retry: boolean): RunningTurn {
    if (this.running) refuse('SESSION_BUSY', 'a turn is running; wait for its end or cancel it');
    const content = blocks.filter((block) => block.type !== 'text' || block.text.trim() !== '');
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('\n').trim();
    if (content.length === 0) refuse('INVALID_INPUT', 'the message is empty; write something or add an image or a file');
    this.#checkSkill(text);
    const { sessionId, modelId } = session;
    const steps = this.#steps({ text, content, sessionId, modelId, turn: this.#turnCount, retry });
    const [first] = steps;
    if (typeof first === 'object' && 'refuse' in first) throw errorOf(first.refuse);
    this.#turnCount += 1;
    const turnId = `turn-${this.#turnCount}-${Date.now().toString(36)}`;
    if (session.title === '') session.title = text.split('\n')[0]?.slice(0, 40) || 'Image';
    const isStored = retry && session.unstored === null;
    const began = !failsUnstored(first);
    session.unstored = isStored || began ? null : content;
    if (!isStored && began) this.#store.append(session, turnId, { type: 'userMessage', content });
    const run = new MockRun(this.#context(session, turnId, began));
    const startSequence = this.#log.lastSequence;
    const ended = this.#run(session, turnId, run, steps, text.length);
    this.running = { turnId, session, run, startSequence, ended };
    this.#remember(turnId, ended);
    return this.running;
  }

  /** Cancels a turn if it runs; says whether it does. */
  cancel(turnId: string | null): boolean {
    if (!this.running || (turnId !== null && turnId !== this.running.turnId)) return false;
    this.running.run.cancel();
    return true;
  }

  /** The outcome of the running turn or one of the last few. */
  outcome(turnId: string): Promise<TurnOutcome> {
    return this.#outcomes.get(turnId) ?? refuse('INVALID_INPUT', `the turn "${turnId}" is not known (any more)`);
  }

  /** Resumes every `hold` step. */
  release(): void {
    const holding = this.#holding;
    this.#holding = [];
    holding.forEach((resume) => resume());
  }

  #context(session: StoredSession, turnId: string, began: boolean): RunContext {
    const store = (event: MockSessionEvent): void => this.#store.append(session, turnId, event);
    return {
      script: this.#script,
      emit: (kind) => void this.#log.append(session.sessionId, turnId, kind),
      newCallId: () => `call-${++this.#callCount}`,
      released: () => new Promise((resolve) => this.#holding.push(resolve)),
      storeCall: (callId, toolName, args) => store({ type: 'toolCall', callId, toolName, arguments: args }),
      storeResult: (callId, tool) =>
        store({
          type: 'toolResult',
          callId,
          toolName: tool.tool,
          output: tool.output ?? '',
          isError: tool.error !== undefined,
          durationMs: tool.durationMs ?? 0,
          ...(tool.error !== undefined ? { error: tool.error } : {}),
          ...(tool.metadata !== undefined ? { metadata: tool.metadata } : {}),
        }),
      storeEnd: ({ interruption, stopReason }) => {
        if (!began) return;
        const type = 'metadata';
        if (interruption) store({ type, metadata: { type: 'turnInterrupted', interruption } });
        else store({ type, metadata: { type: 'turnEndedSilently', ...(stopReason ? { stopReason } : {}) } });
      },
      storeAnswer: (parts, end) =>
        store({
          type: 'assistantMessage',
          parts,
          status: end.interruption || CUT.has(end.stopReason) ? 'incomplete' : 'complete',
          providerId: 'mock',
          modelId: session.modelId,
          ...end,
        }),
    };
  }

  async #run(
    session: StoredSession,
    turnId: string,
    run: MockRun,
    steps: MockStep[],
    inputLength: number,
  ): Promise<TurnOutcome> {
    // The answer to `send_message` goes out first, as it usually does.
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#log.append(session.sessionId, turnId, { type: 'turnStarted' });
    const end = await run.run(steps);
    const usage = this.#script.usage ?? plausibleUsage(inputLength, end.output.length);
    session.usage = sum(session.usage, usage);
    // The session is idle before the last event is out: a send from its handler is accepted.
    this.running = null;
    const last = this.#log.append(session.sessionId, turnId, this.#lastEvent(session, end, usage));
    return {
      turnId,
      status: end.status,
      ...(end.status === 'failed' ? { error: end.error } : {}),
      ...(end.status === 'completed' ? { stopReason: end.stopReason } : {}),
      lastSequence: last.sequence,
      assistantOutput: end.status === 'cancelled' ? '' : end.output,
      usage,
    };
  }

  #lastEvent(session: StoredSession, end: RunEnd, usage: Usage): AgentEventKind {
    if (end.status === 'cancelled') return { type: 'turnCancelled', usage };
    return {
      type: 'turnComplete',
      status: end.status,
      ...(end.status === 'failed' ? { error: end.error } : {}),
      ...(end.status === 'completed' ? { stopReason: end.stopReason } : {}),
      assistantOutput: end.output,
      usage,
      sessionUsage: session.usage,
      contextTokens: contextTokens(session),
      contextWindow: this.contextWindow(session),
    };
  }

  /** Size of a session's context window, in tokens. */
  contextWindow(session: StoredSession): number {
    const model = this.#store.models.find(({ id }) => id === session.modelId);
    return this.#script.contextWindow ?? model?.contextWindow ?? 0;
  }

  #steps(input: MockInput): MockStep[] {
    const { turns } = this.#script;
    if (typeof turns === 'function') return turns(input);
    return turns?.[Math.min(input.turn, turns.length - 1)] ?? [input.text];
  }

  #checkSkill(text: string): void {
    const { skills = [] } = this.#script;
    const name = /^\/([\p{L}\p{N}_-]+)(?=\s|$)/u.exec(text)?.[1];
    if (skills.length === 0 || name === undefined || skills.some((skill) => skill.name === name)) return;
    refuse('SKILL_NOT_FOUND', `there is no skill "/${name}". To send the text as it is, write "//${name}"`);
  }

  #remember(turnId: string, ended: Promise<TurnOutcome>): void {
    this.#outcomes.set(turnId, ended);
    for (const old of [...this.#outcomes.keys()].slice(0, -TURNS_KEPT)) this.#outcomes.delete(old);
    this.#log.keepTurns(new Set(this.#outcomes.keys()));
  }
}

/** Whether a turn fails before its message is stored: a hook aborts its start, or the storage does not take it. */
function failsUnstored(first: MockStep | undefined): boolean {
  return typeof first === 'object' && 'fail' in first && /^(HOOK_ABORTED|STORAGE_ERROR)$/.test(first.fail.code);
}

function sum(a: Usage, b: Usage): Usage {
  return {
    inputTokens: (a.inputTokens ?? 0) + (b.inputTokens ?? 0),
    outputTokens: (a.outputTokens ?? 0) + (b.outputTokens ?? 0),
  };
}
