/**
 * How a page comes to a session, and what the agent has to offer.
 *
 * Every call of this package goes through the generated `commands`, so that arguments and
 * results are checked against the Rust side when it is compiled, and through `settle`, so
 * that every failure is an {@link AgentError}.
 */

import { commands, type ModelEntry, type SessionConfig, type SkillInfo, type ToolInfo } from './bindings.js';
import { settle } from './error.js';
import { defined, newRequestId } from './request.js';
import { Session } from './session.js';

/** How a session is created. Everything is optional. */
export interface CreateSessionOptions {
  /** The model; absent: the agent's default model. See {@link listModels}. */
  modelId?: string | undefined;
  /** The title; absent: the user's first words. */
  title?: string | undefined;
  /** System instructions instead of the agent's, in order. */
  systemInstructions?: string[] | undefined;
  /** Personality instead of the agent's. */
  personality?: string | undefined;
  /** Environment text instead of the agent's; not stored. */
  environment?: string | undefined;
  /** Namespace of the memories instead of the agent's. */
  memoryNamespace?: string | undefined;
  /** Closes the open session first instead of failing with `SESSION_BUSY`. */
  replace?: boolean | undefined;
}

/** How a stored session is opened again. Everything is optional. */
export interface ResumeSessionOptions {
  /** A model instead of the stored one. */
  modelId?: string | undefined;
  /** Environment text instead of the agent's. */
  environment?: string | undefined;
  /** Closes the open session first instead of failing with `SESSION_BUSY`. */
  replace?: boolean | undefined;
}

/**
 * Creates a session and opens it. One session is open at a time.
 *
 * # Errors
 * `SESSION_BUSY` while another is open (unless `replace`) or takes too long to open,
 * `MODEL_NOT_SUPPORTED`, `HOOK_ABORTED`, `AGENT_SHUT_DOWN`.
 */
export async function createSession(options: CreateSessionOptions = {}): Promise<Session> {
  const config: SessionConfig = defined(options);
  return new Session(await settle(commands.createSession(config, newRequestId())));
}

/**
 * Opens a stored session again.
 *
 * # Errors
 * `SESSION_NOT_FOUND`, `SESSION_BUSY` while another is open (unless `replace`) or takes too
 * long to open, `MODEL_NOT_SUPPORTED` if its model is gone and no other is named,
 * `HOOK_ABORTED`, `STORAGE_ERROR`, `AGENT_SHUT_DOWN`.
 */
export async function resumeSession(sessionId: string, options: ResumeSessionOptions = {}): Promise<Session> {
  return new Session(await settle(commands.resumeSession(sessionId, defined(options))));
}

/** The open session, or `null`. After a reload of the page, this is how to find it again. */
export async function currentSession(): Promise<Session | null> {
  const info = await settle(commands.currentSession());
  return info && new Session(info);
}

/** The models that can be used right now; they may change while the app runs. */
export function listModels(): Promise<ModelEntry[]> {
  return settle(commands.listModels());
}

/** The tools the model may call. */
export function listTools(): Promise<ToolInfo[]> {
  return settle(commands.listTools());
}

/** The skills a user can call by writing `/name` at the start of a message. */
export function listSkills(): Promise<SkillInfo[]> {
  return settle(commands.listSkills());
}
