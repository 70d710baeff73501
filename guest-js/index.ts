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
  deleteSession,
  findSessions,
  listModels,
  listSessions,
  listSkills,
  listTools,
  renameSession,
  resumeSession,
  Session,
  sessionHistory,
} from './client.js';
export type {
  CreateSessionOptions,
  HistoryOptions,
  HistoryPage,
  Page,
  ResumeSessionOptions,
  SendOptions,
} from './client.js';
export { AgentError } from './error.js';
export type { AgentErrorCode, AgentErrorFields } from './error.js';
export { reasoningOf, reduceTurn, textOf } from './reduce.js';
export type {
  CompactionPart,
  ErrorPart,
  ReasoningPart,
  RetryPart,
  TextPart,
  ToolPart,
  TurnPart,
  TurnState,
  WarningPart,
} from './reduce.js';
export { Turn } from './turn.js';
export type { EventOf, TurnEventFor, TurnEventName, TurnResult } from './turn.js';
export type {
  AgentError as AgentErrorData,
  AgentEvent,
  AssistantPart,
  Capabilities,
  CompactMethod,
  CompactOutcome,
  ContentBlock,
  ErrorCode,
  ErrorSource,
  Interruption,
  JsonValue,
  MessageStatus,
  ModelEntry,
  ReasoningEffort,
  SessionEvent,
  SessionInfo,
  SessionMetadata,
  SessionSummary,
  SkillInfo,
  ToolInfo,
  Usage,
} from './bindings.js';
