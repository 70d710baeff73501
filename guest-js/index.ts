/**
 * Typed client of `tauri-plugin-youyou-agent`.
 *
 * ```ts
 * import { createSession } from 'tauri-plugin-youyou-agent-api';
 *
 * const session = await createSession();
 * const turn = session.send('What is in this folder?');
 * for await (const piece of turn.textStream) process(piece);
 * ```
 *
 * The app's capability must list `youyou-agent:default` for the window's label.
 *
 * @packageDocumentation
 */

export {
  createSession,
  currentSession,
  listModels,
  listSkills,
  listTools,
  resumeSession,
} from './client.js';
export type { CreateSessionOptions, ResumeSessionOptions } from './client.js';
export { AgentError } from './error.js';
export type { AgentErrorCode, AgentErrorFields } from './error.js';
export type {
  CompactionPart,
  ErrorPart,
  ReasoningPart,
  RetryPart,
  TextPart,
  ToolPart,
  TurnPart,
  WarningPart,
} from './parts.js';
export { reasoningOf, reduceTurn, textOf } from './reduce.js';
export type { TurnState } from './reduce.js';
export type { TurnResult } from './result.js';
export { Session } from './session.js';
export type { SendOptions, SignalOptions } from './session.js';
export { deleteSession, findSessions, fullHistory, listSessions, renameSession, sessionHistory } from './stored.js';
export type { HistoryOptions, HistoryPage, ListOptions, Page } from './stored.js';
export { Turn } from './turn.js';
export type { EventOf, TurnEventFor, TurnEventName } from './turn.js';
export type {
  AgentError as AgentErrorData,
  AgentEvent,
  AssistantPart,
  Capabilities,
  CompactionMethod,
  CompactionOutcome,
  ContentBlock,
  ErrorCode,
  ErrorSource,
  Interruption,
  JsonValue,
  MessageStatus,
  ModelEntry,
  ReasoningEffort,
  ResponseFormat,
  SessionEvent,
  SessionInfo,
  SessionMetadata,
  SessionSummary,
  SkillInfo,
  StopReason,
  ToolInfo,
  Usage,
} from './bindings.js';
