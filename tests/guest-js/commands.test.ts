import { afterEach, expect, test, vi } from 'vitest';
import {
  createSession,
  currentSession,
  deleteSession,
  findSessions,
  fullHistory,
  listModels,
  listSessions,
  listSkills,
  listTools,
  renameSession,
  resumeSession,
  Session,
  sessionHistory,
} from '../../guest-js/index.js';
import { cancelled, deferred, settled, started, Wire } from './wire.js';

let wire: Wire;
afterEach(() => wire.remove());

const CHANNEL = expect.stringMatching(/^__CHANNEL__:\d+$/);
const REQUEST = expect.stringMatching(/^[0-9a-f]{32}$/);

// F14
test('every command gets its arguments by their names, the optional ones as null', async () => {
  const page = { sessions: [], events: [], unreadable: 0 };
  wire = new Wire({
    resume_session: () => wire.info,
    compact: () => ({ tokensBefore: 1, tokensAfter: 1, messagesRemoved: 0 }),
    session_history: () => page,
    list_sessions: () => page,
    find_sessions: () => [],
    rename_session: () => null,
    delete_session: () => null,
    list_models: () => [],
    list_tools: () => [],
    list_skills: () => [],
  });
  const everything = {
    modelId: 'm',
    title: 't',
    systemInstructions: ['a', 'b'],
    personality: 'p',
    environment: 'e',
    memoryNamespace: 'n',
    replace: true,
  };
  await createSession(everything);
  const session = await createSession({ modelId: undefined });
  await resumeSession('x', { modelId: 'm', environment: 'e', replace: true });
  await resumeSession('x');
  await currentSession();
  await listSessions({ cursor: 'c', limit: 5 });
  await listSessions();
  await findSessions('q');
  await renameSession('x', 't');
  await deleteSession('x');
  await sessionHistory('x', { cursor: '3', from: 1, limit: 5, withImages: true });
  await sessionHistory('x', { from: 1 });
  await session.history();
  await listModels();
  await listTools();
  await listSkills();
  await session.compact();
  const options = { modelId: 'm', temperature: 0.5, maxTokens: 10, reasoningEffort: 'low' } as const;
  const turn = session.send('hi', options);
  session.send([{ type: 'file', name: 'a.txt', text: 'A' }]);
  session.retry();
  const active = await session.activeTurn();
  await settled();
  await turn.cancel();
  wire.push(0, started(1), cancelled(2));
  await active?.cancel();
  wire.push(3, started(1), cancelled(2));
  await session.close();
  const named = wire.calls.map(({ command, args }) => [command, args] as const);
  expect(named.filter(([command]) => command !== 'current_session' && command !== 'ack')).toEqual([
    ['create_session', { config: everything, requestId: REQUEST }],
    ['create_session', { config: {}, requestId: REQUEST }],
    ['resume_session', { sessionId: 'x', options: { modelId: 'm', environment: 'e', replace: true } }],
    ['resume_session', { sessionId: 'x', options: {} }],
    ['list_sessions', { cursor: 'c', limit: 5 }],
    ['list_sessions', { cursor: null, limit: null }],
    ['find_sessions', { query: 'q' }],
    ['rename_session', { sessionId: 'x', title: 't' }],
    ['delete_session', { sessionId: 'x' }],
    ['session_history', { sessionId: 'x', cursor: 3, limit: 5, withImages: true }],
    ['session_history', { sessionId: 'x', cursor: 1, limit: null, withImages: null }],
    ['session_history', { sessionId: 's', cursor: null, limit: null, withImages: null }],
    ['list_models', {}],
    ['list_tools', {}],
    ['list_skills', {}],
    ['compact', { sessionId: 's', requestId: REQUEST }],
    ['send_message', { sessionId: 's', content: 'hi', options, requestId: REQUEST, onEvent: CHANNEL }],
    [
      'send_message',
      {
        sessionId: 's',
        content: [{ type: 'file', name: 'a.txt', text: 'A' }],
        options: {},
        requestId: REQUEST,
        onEvent: CHANNEL,
      },
    ],
    ['retry_turn', { sessionId: 's', requestId: REQUEST, onEvent: CHANNEL }],
    ['wait_turn', { turnId: 't' }],
    ['attach', { sessionId: 's', afterSequence: null, onEvent: CHANNEL }],
    ['wait_turn', { turnId: 't' }],
    ['wait_turn', { turnId: 't' }],
    ['wait_turn', { turnId: 't' }],
    ['cancel', { turnId: 't', requestId: null }],
    ['cancel', { turnId: 't', requestId: null }],
    ['detach', { subscription: 4 }],
    ['close_session', { sessionId: 's' }],
  ]);
});

test('a request never has the id of another', async () => {
  wire = new Wire();
  const session = await createSession();
  for (let i = 0; i < 50; i += 1) session.send('hi');
  expect(new Set(wire.of('send_message').map((args) => args['requestId'])).size).toBe(50);
});

test('a page without cursor is the last, and one with it gives it on', async () => {
  const rows = [{ sessionId: 'x', title: 't', createdAt: 1, updatedAt: 2, messageCount: 3 }];
  const pages = [{ sessions: rows, nextCursor: 'c' }, { sessions: rows }];
  wire = new Wire({ list_sessions: () => pages.shift() });
  expect(await listSessions()).toEqual({ items: rows, nextCursor: 'c' });
  expect(await listSessions({ cursor: 'c' })).toEqual({ items: rows });
});

test('a page of a history has the same shape, tells what could not be read, and takes no cursor from elsewhere', async () => {
  const event = (index: number): object => ({ index, timestamp: 1, turnId: 't', type: 'systemMessage', text: 'x' });
  wire = new Wire({
    session_history: ({ cursor }) =>
      cursor === null
        ? { events: [event(0), event(2)], unreadable: 1, nextCursor: 3 }
        : { events: [event(3)], unreadable: 0 },
  });
  const first = await sessionHistory('x');
  expect(first).toEqual({ items: [event(0), event(2)], unreadable: 1, nextCursor: '3' });
  expect(await sessionHistory('x', { cursor: first.nextCursor })).toEqual({ items: [event(3)], unreadable: 0 });
  expect(await fullHistory('x')).toEqual({ items: [event(0), event(2), event(3)], unreadable: 1 });
  for (const cursor of ['', ' ', 'c', '-1', '1.5', '1e300']) {
    await expect(sessionHistory('x', { cursor }), cursor).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  }
  expect(wire.of('session_history').map(({ cursor, limit }) => [cursor, limit])).toEqual([
    [null, null], [3, null], [null, 500], [3, 500],
  ]);
});

test('a session is a handle: it is found again, disposed by closing, and closing twice is fine', async () => {
  wire = new Wire({
    close_session: vi.fn(() => null).mockImplementationOnce(() => null).mockImplementation(() => {
      throw { code: 'SESSION_NOT_FOUND', message: 'closed', retryable: false, source: 'agent' };
    }),
  });
  const session = await createSession();
  const again = await currentSession();
  expect(again).toBeInstanceOf(Session);
  expect(again).toMatchObject({ id: session.id, modelId: session.modelId });
  await session[Symbol.asyncDispose]();
  await session.close();
  expect(wire.of('close_session')).toEqual([{ sessionId: 's' }, { sessionId: 's' }]);
  wire.info = null;
  expect(await currentSession()).toBeNull();
  await expect(session.info()).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
});

test('a compaction is cancelled by its signal, and by no other', async () => {
  const outcome = { tokensBefore: 9, tokensAfter: 3, messagesRemoved: 1 };
  const pending = deferred<unknown>();
  wire = new Wire({ compact: () => pending.promise });
  const session = await createSession();
  const stop = new AbortController();
  const compacting = session.compact({ signal: stop.signal });
  stop.abort();
  await settled();
  const [asked] = wire.of('compact');
  expect(wire.of('cancel')).toEqual([{ turnId: null, requestId: asked?.['requestId'] }]);
  pending.reject({ code: 'REQUEST_CANCELLED', message: 'cancelled', retryable: false, source: 'agent' });
  await expect(compacting).rejects.toMatchObject({ code: 'REQUEST_CANCELLED' });
  await expect(session.compact({ signal: stop.signal })).rejects.toMatchObject({ code: 'REQUEST_CANCELLED' });
  expect(wire.of('compact')).toHaveLength(1);
  wire.remove();
  wire = new Wire({ compact: () => outcome });
  const late = new AbortController();
  expect(await session.compact({ signal: late.signal })).toEqual(outcome);
  late.abort();
  await settled();
  expect(wire.of('cancel')).toEqual([]);
});
