/**
 * What comes out of a turn, and the last event where the real one is lost.
 */

import type { AgentEvent, SessionInfo, StopReason, TurnOutcome, Usage } from './bindings.js';
import { AgentError } from './error.js';
import type { ToolPart } from './parts.js';
import { reasoningOf, textOf, type TurnState } from './reduce.js';

/** What came out of a turn that did not fail. */
export interface TurnResult {
  /** `cancelled` is not an error: what was received until then is in the other fields. */
  status: 'completed' | 'cancelled';
  /** The turn; empty if the signal had fired before the message was sent. */
  turnId: string;
  /**
   * Whether the answer is what the model wanted to say in full. `false` for a cancelled turn, and
   * for one whose answer was cut by a limit, filtered or refused: `stopReason` says which.
   * Look here before you take `text` for a whole answer.
   */
  isWhole: boolean;
  /** Why the model stopped in the turn's last response; `null` if its provider did not say or the turn was cancelled. */
  stopReason: StopReason | null;
  /**
   * Text of the turn's last response as the agent reports it; of a cancelled turn all text
   * that was shown. Text before tool calls is in {@link Turn.textStream} and {@link Turn.state}.
   */
  text: string;
  /** All reasoning that was shown. */
  reasoning: string;
  /** All tool calls, in the order they started. */
  toolCalls: ToolPart[];
  /** What the turn cost, in tokens. */
  usage: Usage;
}

/** The result of a turn that was cancelled before it was sent. */
export const NEVER_SENT: TurnResult = {
  status: 'cancelled',
  turnId: '',
  isWhole: false,
  stopReason: null,
  text: '',
  reasoning: '',
  toolCalls: [],
  usage: {},
};

/** The result of an ended turn, or the error it failed with. */
export function resultOf(state: TurnState): TurnResult | AgentError {
  if (state.status === 'failed') {
    return AgentError.from(
      state.error ?? {
        code: 'INTERNAL',
        message: 'the turn failed and the agent did not say why',
        retryable: false,
        source: 'agent',
      },
    );
  }
  return {
    status: state.status === 'cancelled' ? 'cancelled' : 'completed',
    turnId: state.turnId,
    isWhole: state.status === 'completed' && !isCut(state.stopReason),
    stopReason: state.stopReason ?? null,
    text: state.assistantOutput ?? textOf(state),
    reasoning: reasoningOf(state),
    toolCalls: state.parts.filter((part) => part.type === 'tool'),
    usage: state.usage ?? {},
  };
}

/** Whether an answer that stopped for this reason is not whole; so is one with a reason that is not known here. */
function isCut(reason: StopReason | undefined): boolean {
  return reason !== undefined && reason !== 'endTurn' && reason !== 'other';
}

/** The last event of a turn, made from its outcome because the real one is lost for good. */
export function lastEventOf(sessionId: string, outcome: TurnOutcome, info: SessionInfo | null): AgentEvent {
  const envelope = {
    sessionId,
    turnId: outcome.turnId,
    timestamp: Date.now(),
    sequence: outcome.lastSequence,
  };
  if (outcome.status === 'cancelled') return { ...envelope, type: 'turnCancelled', usage: outcome.usage };
  return {
    ...envelope,
    type: 'turnComplete',
    status: outcome.status,
    ...(outcome.error ? { error: outcome.error } : {}),
    ...(outcome.stopReason ? { stopReason: outcome.stopReason } : {}),
    assistantOutput: outcome.assistantOutput,
    usage: outcome.usage,
    sessionUsage: {},
    contextTokens: info?.contextTokens ?? 0,
    contextWindow: info?.contextWindow ?? 0,
  };
}
