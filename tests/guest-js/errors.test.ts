import { afterEach, describe, expect, test } from 'vitest';
import {
  AgentError,
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
  sessionHistory,
  type ErrorCode,
  type Session,
} from '../../guest-js/index.js';
import { settled, Wire } from './wire.js';

const CODES: ErrorCode[] = [
  'SESSION_BUSY',
  'MODEL_NOT_SUPPORTED',
  'PROVIDER_ERROR',
  'TOOL_EXECUTION_ERROR',
  'TOOL_TIMEOUT',
  'TOOL_NOT_FOUND',
  'SKILL_NOT_FOUND',
  'SESSION_NOT_FOUND',
  'STORAGE_ERROR',
  'MAX_TOOL_CALLS_EXCEEDED',
  'COMPACT_ERROR',
  'REQUEST_CANCELLED',
  'INVALID_INPUT',
  'CONTENT_NOT_SUPPORTED',
  'HOOK_ABORTED',
  'AGENT_SHUT_DOWN',
  'INTERNAL',
];

let wire: Wire | undefined;
afterEach(() => wire?.remove());

async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'fulfilled',
    (error: unknown) => error,
  );
}

async function openThenFail(thrown: unknown): Promise<Session> {
  let open = false;
  const fail = (): unknown => {
    throw thrown;
  };
  const commands = [
    'resume_session', 'current_session', 'attach', 'send_message', 'retry_turn', 'compact', 'close_session',
    'session_history', 'list_sessions', 'find_sessions', 'rename_session', 'delete_session',
    'list_models', 'list_tools', 'list_skills',
  ];
  wire = new Wire({
    ...Object.fromEntries(commands.map((command) => [command, fail])),
    create_session: () => {
      if (open) throw thrown;
      open = true;
      return wire?.info;
    },
  });
  return createSession();
}

/** Every function of the package that calls the agent. */
function everyFunction(session: Session): Record<string, () => Promise<unknown>> {
  return {
    createSession: () => createSession(),
    resumeSession: () => resumeSession('s'),
    currentSession: () => currentSession(),
    listSessions: () => listSessions(),
    findSessions: () => findSessions('q'),
    renameSession: () => renameSession('s', 't'),
    deleteSession: () => deleteSession('s'),
    sessionHistory: () => sessionHistory('s'),
    listModels: () => listModels(),
    listTools: () => listTools(),
    listSkills: () => listSkills(),
    send: () => session.send('hi').result(),
    retry: () => session.retry().result(),
    activeTurn: () => session.activeTurn(),
    info: () => session.info(),
    history: () => session.history(),
    fullHistory: () => session.fullHistory(),
    events: async () => {
      for await (const item of session.events()) void item;
    },
    compact: () => session.compact(),
    close: () => session.close(),
  };
}

describe('a command that fails', () => {
  // F11
  test.each(CODES)('rejects every function with an AgentError: %s', async (code) => {
    const thrown = { code, message: `because of ${code}`, retryable: true, source: 'agent' };
    const session = await openThenFail(thrown);
    for (const [name, call] of Object.entries(everyFunction(session))) {
      // Closing what is closed already is done.
      if (name === 'close' && (code === 'SESSION_NOT_FOUND' || code === 'AGENT_SHUT_DOWN')) continue;
      const error = await reasonOf(call());
      expect(error, name).toBeInstanceOf(AgentError);
      expect(error, name).toBeInstanceOf(Error);
      expect(error, name).toMatchObject(thrown);
      expect(String(error), name).toBe(`AgentError: because of ${code}`);
    }
  });

  // F10
  test.each([
    'Command plugin:youyou-agent|send_message not allowed by ACL',
    'youyou-agent.send_message not allowed on window "other", webview "other", URL: local\n\n' +
      'allowed on: [windows: "main", URL: local]\n\nreferenced by: capability: main, permission: allow-send-message',
    'youyou-agent.send_message not allowed. Permissions associated with this command: youyou-agent:allow-send-message',
    'youyou-agent.send_message explicitly denied on origin local\n\nreferenced by: capability: main, permission: x',
  ])('that the access control refuses is IPC_DENIED with its text, and is not repeated: %s', async (text) => {
    const session = await openThenFail(text);
    for (const [name, call] of Object.entries(everyFunction(session))) {
      const error = await reasonOf(call());
      expect(error, name).toBeInstanceOf(AgentError);
      expect(error, name).toMatchObject({ code: 'IPC_DENIED', message: text, retryable: false, source: 'ipc' });
    }
    expect(wire?.of('send_message')).toHaveLength(1);
  });

  test.each([
    ['a string', 'state not managed', 'IPC_ERROR', 'state not managed'],
    ['nothing', undefined, 'UNKNOWN', 'something unexpected was thrown: undefined'],
    ['null', null, 'UNKNOWN', 'something unexpected was thrown: null'],
    ['an object without message', { code: 7 }, 'UNKNOWN', 'something unexpected was thrown: {"code":7}'],
    ['a foreign error', new TypeError('x is not y'), 'UNKNOWN', 'something unexpected was thrown: TypeError: x is not y'],
  ])('with %s still rejects with an AgentError that can be read', async (_, thrown, code, message) => {
    const session = await openThenFail(thrown);
    const error = await reasonOf(session.send('hi').result());
    expect(error).toBeInstanceOf(AgentError);
    expect(error).toMatchObject({ code, message, source: 'ipc', retryable: false });
  });

  test('with something huge quotes an excerpt of it', async () => {
    const session = await openThenFail({ x: 'y'.repeat(10_000) });
    const error = (await reasonOf(session.info())) as AgentError;
    expect(error.code).toBe('UNKNOWN');
    expect(error.message.length).toBeLessThan(300);
  });
});

test('outside a Tauri app the error says so and what to do', async () => {
  const error = (await reasonOf(createSession())) as AgentError;
  expect(error.code).toBe('IPC_ERROR');
  expect(error.message).toContain('does not run inside a Tauri app');
});

test('AgentError.is tells codes apart, also for an error of another copy of the package', async () => {
  const own = AgentError.from({ code: 'SESSION_BUSY', message: 'm', retryable: true, source: 'agent' });
  const foreign = Object.assign(new Error('m'), { name: 'AgentError', code: 'SESSION_BUSY' });
  expect([own, foreign].map((error) => AgentError.is(error))).toEqual([true, true]);
  expect([own, foreign].map((error) => AgentError.is(error, 'SESSION_BUSY'))).toEqual([true, true]);
  expect([own, foreign].map((error) => AgentError.is(error, 'INTERNAL'))).toEqual([false, false]);
  expect([new Error('m'), 'm', null, undefined].map((error) => AgentError.is(error))).toEqual([false, false, false, false]);
  await settled();
});
