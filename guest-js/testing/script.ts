/**
 * What a mock agent is told to do: plain data and small builders.
 */

import type {
  AgentError as AgentErrorData,
  ChannelMessage,
  ContentBlock,
  ErrorCode,
  ErrorSource,
  JsonValue,
  ModelEntry,
  SessionEvent,
  SkillInfo,
  StopReason,
  ToolInfo,
  Usage,
} from '../bindings.js';

/** An error of a script: only the code is needed. */
export type MockError = Pick<AgentErrorData, 'code'> & Partial<AgentErrorData>;

/** One thing that happens in a scripted turn. A plain string is text. */
export type MockStep =
  | string
  /** Text or reasoning, streamed in pieces of about `pieceLength` characters, one every `everyMs`. */
  | { text: string; pieceLength?: number; everyMs?: number }
  | { reasoning: string; pieceLength?: number; everyMs?: number }
  /** A tool call that takes `durationMs` and ends with `output`; with `error` it fails. */
  | {
      tool: string;
      arguments?: JsonValue;
      output?: string;
      error?: ErrorCode;
      metadata?: JsonValue;
      durationMs?: number;
      /** Said one after another while the tool runs. */
      progress?: string[];
      callId?: string;
    }
  /** Several tool calls that run at once. */
  | { tools: Extract<MockStep, { tool: string }>[] }
  /** Nothing for so many milliseconds. */
  | { delayMs: number }
  /** Nothing until the turn is cancelled or `release()` of the mock agent is called. */
  | { hold: true }
  /** A retry of the model call, waiting `delayMs`. */
  | { retry: MockError; attempt?: number; delayMs?: number }
  | { warning: string }
  | { compacted: { tokensBefore: number; tokensAfter: number; messagesRemoved: number } }
  /** An error that does not end the turn. */
  | { error: MockError }
  /**
   * The model stops for this reason, such as `length`: the answer is cut, and the turn completes.
   * What comes after it is not run. Absent: `endTurn`.
   */
  | { stop: StopReason }
  /**
   * The turn fails. What comes after it is not run. As the first step with `HOOK_ABORTED` or
   * `STORAGE_ERROR` it fails as in the agent: before the message is stored.
   */
  | { fail: MockError }
  /** The message is refused: no turn begins. Only as the first step. */
  | { refuse: MockError };

/** What a scripted turn answers to. */
export interface MockInput {
  /** The text blocks, joined. */
  text: string;
  /** All blocks. */
  content: ContentBlock[];
  /** The session. */
  sessionId: string;
  /** The session's model. */
  modelId: string;
  /** Number of the turn, from 0. */
  turn: number;
  /** Whether it is a retry. */
  retry: boolean;
}

/** A stored session that is there from the start. */
export interface MockSession {
  /** Its id. */
  sessionId: string;
  /** Its title. */
  title: string;
  /** Its model; absent: the first. */
  modelId?: string;
  /** Milliseconds since the Unix epoch; absent: now. */
  updatedAt?: number;
  /** Its stored events; `index` and the rest of the envelope may be left out. */
  events?: (Partial<Pick<SessionEvent, 'index' | 'timestamp' | 'turnId'>> & MockSessionEvent)[];
}

/** A stored event without its envelope. */
export type MockSessionEvent = SessionEvent extends infer E
  ? E extends SessionEvent
    ? Omit<E, 'index' | 'timestamp' | 'turnId'>
    : never
  : never;

/** What the way between agent and page does to one message. */
export type MockDelivery = 'deliver' | 'lose' | { delayMs: number };

/** Everything a mock agent can be told. All of it is optional. */
export interface MockScript {
  /**
   * The turns: a list that is worked through (the last one repeats), or a function that
   * answers each message. Absent: every message is answered with its own text.
   */
  turns?: MockStep[][] | ((input: MockInput) => MockStep[]);
  /** Milliseconds between pieces of text where a step does not say; default 20. */
  everyMs?: number;
  /** Characters per piece where a step does not say; default 8. */
  pieceLength?: number;
  /** Milliseconds each command takes; default 0. */
  latencyMs?: number;
  /** The models; default: one mock model. */
  models?: ModelEntry[];
  /** The tools that `listTools` shows. */
  tools?: ToolInfo[];
  /** The skills that `listSkills` shows; an unknown `/name` is refused once there are any. */
  skills?: SkillInfo[];
  /** Milliseconds a compaction takes; default 0. */
  compactMs?: number;
  /** Stored sessions. */
  sessions?: MockSession[];
  /** Usage that every turn reports. */
  usage?: Usage;
  /** Size of the context window in tokens; default that of the model. */
  contextWindow?: number;
  /** Makes the way to the page unreliable: called for every message of every subscription, heartbeats included. */
  transport?: (message: ChannelMessage, subscription: number) => MockDelivery;
  /** Fails a command: return an error (or a string, as the framework does) to reject it. */
  failCommand?: (command: string, args: Record<string, unknown>) => MockError | string | undefined;
  /** Answers commands of the app and of other plugins. Absent: they are rejected as not found. */
  otherCommands?: (command: string, args: Record<string, unknown>) => unknown;
}

/** Fills in what a script left out of an error. */
export function errorOf(error: MockError): AgentErrorData {
  return {
    message: `${error.code} (scripted)`,
    retryable: RETRYABLE.has(error.code),
    source: SOURCES[error.code] ?? (error.code.startsWith('TOOL_') ? 'tool' : 'agent'),
    ...error,
  };
}

/** As the agent has it; a provider's error is retryable by its kind, most of them are. */
const RETRYABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SESSION_BUSY',
  'PROVIDER_ERROR',
  'TOOL_TIMEOUT',
  'STORAGE_ERROR',
  'REQUEST_CANCELLED',
]);

const SOURCES: Partial<Record<ErrorCode, ErrorSource>> = {
  PROVIDER_ERROR: 'provider',
  STORAGE_ERROR: 'storage',
  HOOK_ABORTED: 'plugin',
  PLUGIN_INIT_FAILED: 'plugin',
};

/** Refuses a command. */
export function refuse(code: MockError['code'], message: string): never {
  throw errorOf({ code, message });
}
