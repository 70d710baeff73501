/**
 * The mock agent: sessions, turns and commands, as the real one has them.
 */

import type {
  AgentEventKind,
  ContentBlock,
  MessageContent,
  ResumeOptions,
  SessionConfig,
  SessionEvent,
  SessionInfo,
  SessionState,
  SessionSummary,
  TurnOutcome,
  Usage,
} from '../bindings.js';
import { MockLog } from './log.js';
import { channelId, MockPage } from './page.js';
import { MockRun, plausibleUsage, type RunEnd } from './run.js';
import { errorOf, type MockError, type MockScript, type MockSessionEvent, type MockStep } from './script.js';

/** How many ended turns the agent remembers, for `attach` and `wait_turn`. */
const TURNS_KEPT = 4;

const MOCK_MODEL = {
  providerId: 'mock',
  id: 'mock-1',
  displayName: 'Mock model',
  contextWindow: 128_000,
  capabilities: { toolUse: true, vision: true, streaming: true, reasoning: true },
};

interface StoredSession {
  sessionId: string;
  title: string;
  modelId: string;
  createdAt: number;
  updatedAt: number;
  events: SessionEvent[];
  usage: Usage;
}

interface RunningTurn {
  turnId: string;
  sessionId: string;
  run: MockRun;
  /** Number of the newest event before it began. */
  startSequence: number;
  ended: Promise<TurnOutcome>;
}

/** A call the page made. */
export interface MockCall {
  /** The command without its prefix, such as `send_message`; other plugins' and the app's in full. */
  command: string;
  /** Its arguments as they arrived. */
  args: Record<string, unknown>;
}

type Args = Record<string, unknown>;

/** An agent without Rust. Made by {@link mockAgent}. */
export class MockAgent {
  /** Every call so far, in order. */
  readonly calls: MockCall[] = [];
  readonly #script: MockScript;
  readonly #page: MockPage;
  readonly #log: MockLog;
  readonly #sessions = new Map<string, StoredSession>();
  readonly #outcomes = new Map<string, Promise<TurnOutcome>>();
  readonly #requests = new Map<string, string>();
  #open: StoredSession | null = null;
  #running: RunningTurn | null = null;
  #turnCount = 0;
  #idCount = 0;
  #release: (() => void)[] = [];

  /** @internal Use {@link mockAgent}. */
  constructor(script: MockScript) {
    this.#script = script;
    this.#page = new MockPage((command, args) => this.#answer(command, args));
    this.#log = new MockLog(this.#page, script.transport);
    for (const session of script.sessions ?? []) {
      const updatedAt = session.updatedAt ?? Date.now();
      this.#sessions.set(session.sessionId, {
        sessionId: session.sessionId,
        title: session.title,
        modelId: session.modelId ?? this.#defaultModel(),
        createdAt: updatedAt,
        updatedAt,
        usage: {},
        events: (session.events ?? []).map(
          (event, index) => ({ index, timestamp: updatedAt, turnId: `stored-${index}`, ...event }) as SessionEvent,
        ),
      });
    }
  }

  /** How many channels the page holds that have not ended. */
  get openChannels(): number {
    return this.#page.callbackCount;
  }

  /** How many subscriptions the agent has. */
  get subscriptions(): number {
    return this.#log.subscriptionCount;
  }

  /** Lets every turn go on that is at a `hold` step. */
  release(): void {
    const waiting = this.#release;
    this.#release = [];
    waiting.forEach((go) => go());
  }

  /** What a reload of the page does: its channels are gone, turns go on. */
  reload(): void {
    this.#page.reload();
    this.#log.dropAll();
  }

  /** Ends all subscriptions without telling the page, as the agent does to a page that stopped answering. */
  dropSubscriptions(): void {
    this.#log.dropAll();
  }

  /** Sends a message as another window would. */
  async sendFromElsewhere(text: string): Promise<TurnOutcome> {
    const session = this.#open;
    if (!session) throw new Error('no session is open');
    const turn = this.#begin(session, [{ type: 'text', text }], false);
    return turn.ended;
  }

  /** Removes the mock; a running turn is cancelled. */
  remove(): void {
    this.#running?.run.cancel();
    this.release();
    this.#page.remove();
  }

  async #answer(command: string, args: Args): Promise<unknown> {
    const { latencyMs = 0 } = this.#script;
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
    const name = command.startsWith(PREFIX) ? command.slice(PREFIX.length) : null;
    this.calls.push({ command: name ?? command, args });
    const failure = this.#script.failCommand?.(name ?? command, args);
    if (failure !== undefined) throw typeof failure === 'string' ? failure : errorOf(failure);
    if (name === null) {
      if (this.#script.otherCommands) return this.#script.otherCommands(command, args);
      throw `Command ${command} not found`;
    }
    const handler = this.#commands[name];
    if (!handler) throw `Command ${name} not found`;
    for (const key of handler.required) {
      if (args[key] == null) {
        throw `invalid args \`${key}\` for command \`${name}\`: command ${name} missing required key ${key}`;
      }
    }
    return handler.run(args);
  }

  readonly #commands: Record<string, { required: string[]; run: (args: Args) => unknown }> = {
    create_session: { required: [], run: ({ config }) => this.#create((config ?? {}) as SessionConfig) },
    resume_session: {
      required: ['sessionId'],
      run: ({ sessionId, options }) => this.#resume(sessionId as string, (options ?? {}) as ResumeOptions),
    },
    current_session: { required: [], run: () => (this.#open ? this.#info(this.#open) : null) },
    send_message: {
      required: ['sessionId', 'content', 'onEvent'],
      run: (args) => this.#send(args, blocksOf(args['content'] as MessageContent), false),
    },
    retry_turn: { required: ['sessionId', 'onEvent'], run: (args) => this.#retry(args) },
    wait_turn: { required: ['turnId'], run: ({ turnId }) => this.#outcome(turnId as string) },
    cancel: { required: [], run: (args) => this.#cancel(args) },
    attach: {
      required: ['sessionId', 'onEvent'],
      run: ({ sessionId, afterSequence, onEvent }) => {
        const session = this.#opened(sessionId);
        // Without a number: from the start of the running turn, or from now on.
        const start = this.#running ? this.#running.startSequence : this.#log.lastSequence;
        const after = (afterSequence as number | null) ?? start;
        const subscription = this.#log.subscribe(channelId(onEvent), session.sessionId, { after });
        const { state, turnId, lastSequence } = this.#info(session);
        return { subscription, state, turnId, lastSequence };
      },
    },
    detach: { required: ['subscription'], run: ({ subscription }) => this.#log.unsubscribe(subscription as number) },
    ack: {
      required: ['subscription', 'sequence'],
      run: ({ subscription }) => this.#log.has(subscription as number),
    },
    compact: { required: ['sessionId'], run: ({ sessionId }) => this.#compact(this.#opened(sessionId)) },
    close_session: { required: ['sessionId'], run: ({ sessionId }) => this.#close(sessionId as string) },
    session_history: { required: ['sessionId'], run: (args) => this.#history(args) },
    list_sessions: { required: [], run: (args) => this.#list(args) },
    find_sessions: { required: ['query'], run: ({ query }) => this.#find(query as string) },
    rename_session: {
      required: ['sessionId', 'title'],
      run: ({ sessionId, title }) => {
        this.#stored(sessionId).title = title as string;
      },
    },
    delete_session: { required: ['sessionId'], run: ({ sessionId }) => this.#delete(sessionId as string) },
    list_models: { required: [], run: () => this.#models() },
    list_tools: { required: [], run: () => this.#script.tools ?? [] },
    list_skills: { required: [], run: () => this.#script.skills ?? [] },
  };

  async #create(config: SessionConfig): Promise<SessionInfo> {
    const modelId = this.#model(config.modelId);
    await this.#freeSlot(config.replace);
    const now = Date.now();
    const sessionId = `session-${++this.#idCount}-${now.toString(36)}`;
    const session: StoredSession = {
      sessionId,
      title: config.title ?? '',
      modelId,
      createdAt: now,
      updatedAt: now,
      events: [],
      usage: {},
    };
    this.#sessions.set(sessionId, session);
    this.#open = session;
    return this.#info(session);
  }

  async #resume(sessionId: string, options: ResumeOptions): Promise<SessionInfo> {
    const session = this.#stored(sessionId);
    if (options.modelId != null) this.#model(options.modelId);
    await this.#freeSlot(options.replace);
    if (options.modelId != null) session.modelId = options.modelId;
    this.#open = session;
    return this.#info(session);
  }

  async #freeSlot(replace: boolean | undefined): Promise<void> {
    if (!this.#open) return;
    if (!replace) refuse('SESSION_BUSY', 'another session is open; close it first, or pass replace: true');
    await this.#close(this.#open.sessionId);
  }

  async #close(sessionId: string): Promise<void> {
    if (this.#open?.sessionId !== sessionId) return;
    if (this.#running) {
      this.#running.run.cancel();
      await this.#running.ended;
    }
    if (this.#open.events.length === 0) this.#sessions.delete(sessionId);
    this.#open = null;
  }

  #send(args: Args, content: ContentBlock[], retry: boolean): { turnId: string; subscription: number } {
    const session = this.#opened(args['sessionId']);
    const channel = channelId(args['onEvent']);
    const requestId = args['requestId'] as string | null;
    const known = requestId === null ? undefined : this.#requests.get(requestId);
    if (known !== undefined) {
      return {
        turnId: known,
        subscription: this.#log.subscribe(channel, session.sessionId, { turnId: known, after: 0 }),
      };
    }
    const { modelId } = (args['options'] as { modelId?: string | null } | null) ?? {};
    if (this.#running) refuse('SESSION_BUSY', 'a turn is running; wait for its end or cancel it');
    if (modelId != null) session.modelId = this.#model(modelId);
    const turn = this.#begin(session, content, retry);
    if (requestId !== null) this.#requests.set(requestId, turn.turnId);
    return {
      turnId: turn.turnId,
      subscription: this.#log.subscribe(channel, session.sessionId, { turnId: turn.turnId, after: null }),
    };
  }

  #retry(args: Args): { turnId: string; subscription: number } {
    const { events } = this.#opened(args['sessionId']);
    const last = events.findLast((event) => event.type === 'userMessage');
    if (last?.type !== 'userMessage') refuse('INVALID_INPUT', 'there is no message to retry');
    return this.#send(args, last.content, true);
  }

  #begin(session: StoredSession, blocks: ContentBlock[], retry: boolean): RunningTurn {
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
    const emit = (kind: AgentEventKind): void => void this.#log.append(sessionId, turnId, kind);
    const store = (event: MockSessionEvent): void => this.#store(session, turnId, event);
    const run = new MockRun({
      script: this.#script,
      emit,
      newCallId: () => `call-${++this.#idCount}`,
      released: () => new Promise((resolve) => this.#release.push(resolve)),
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
      storeAnswer: (parts, interruption) =>
        store({
          type: 'assistantMessage',
          parts,
          status: interruption ? 'incomplete' : 'complete',
          providerId: 'mock',
          modelId: session.modelId,
          ...(interruption ? { interruption } : {}),
        }),
    });
    if (session.title === '') session.title = text.split('\n')[0]?.slice(0, 40) || 'Image';
    if (!retry) store({ type: 'userMessage', content });
    const ended = this.#run(session, turnId, run, steps, text.length);
    this.#running = { turnId, sessionId, run, startSequence: this.#log.lastSequence, ended };
    this.#remember(turnId, ended);
    return this.#running;
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
    const { contextTokens, contextWindow } = this.#info(session);
    // The session is idle before the last event is out: a send from its handler is accepted.
    this.#running = null;
    const last = this.#log.append(session.sessionId, turnId, lastEvent(end, usage, session.usage, contextTokens, contextWindow));
    return {
      turnId,
      status: end.status,
      ...(end.status === 'failed' ? { error: end.error } : {}),
      lastSequence: last.sequence,
      assistantOutput: end.output,
      usage,
    };
  }

  #steps(input: Parameters<Extract<MockScript['turns'], (...args: never[]) => unknown>>[0]): MockStep[] {
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

  #cancel({ turnId, requestId }: Args): boolean {
    const meant = turnId ?? (requestId == null ? this.#running?.turnId : this.#requests.get(requestId as string));
    if (!this.#running || meant !== this.#running.turnId) return false;
    this.#running.run.cancel();
    return true;
  }

  #outcome(turnId: string): Promise<TurnOutcome> {
    return this.#outcomes.get(turnId) ?? refuse('INVALID_INPUT', `the turn "${turnId}" is not known (any more)`);
  }

  #remember(turnId: string, ended: Promise<TurnOutcome>): void {
    this.#outcomes.set(turnId, ended);
    for (const old of [...this.#outcomes.keys()].slice(0, -TURNS_KEPT)) this.#outcomes.delete(old);
    this.#log.keepTurns(new Set(this.#outcomes.keys()));
  }

  #store(session: StoredSession, turnId: string, event: MockSessionEvent): void {
    const timestamp = Date.now();
    session.updatedAt = Math.max(session.updatedAt, timestamp);
    session.events.push({ index: session.events.length, timestamp, turnId, ...event } as SessionEvent);
  }

  #compact(session: StoredSession): unknown {
    if (this.#running) refuse('SESSION_BUSY', 'a turn is running; wait for its end or cancel it');
    const { contextTokens } = this.#info(session);
    const tokensAfter = Math.ceil(contextTokens / 4);
    return { method: 'summarized', tokensBefore: contextTokens, tokensAfter, messagesRemoved: messageCount(session) };
  }

  #history({ sessionId, cursor, limit, withImages }: Args): unknown {
    const { events } = this.#stored(sessionId);
    const after = (cursor as number | null) ?? -1;
    const size = (limit as number | null) ?? 200;
    const rest = events.filter((event) => event.index > after);
    const page = rest.slice(0, size).map((event) => (withImages ? event : withoutImages(event)));
    const nextCursor = rest.length > size ? page.at(-1)?.index : undefined;
    return { events: page, ...(nextCursor !== undefined ? { nextCursor } : {}) };
  }

  #list({ cursor, limit }: Args): unknown {
    const all = this.#summaries();
    const start = cursor == null ? 0 : all.findIndex((row) => row.sessionId === cursor) + 1;
    const sessions = all.slice(start, start + ((limit as number | null) ?? 50));
    const last = sessions.at(-1);
    const more = last !== undefined && last !== all.at(-1);
    return { sessions, ...(more ? { nextCursor: last.sessionId } : {}) };
  }

  #find(query: string): SessionSummary[] {
    if (query.trim() === '') return [];
    const all = this.#summaries();
    const ways: ((row: SessionSummary) => boolean)[] = [
      (row) => row.sessionId === query,
      (row) => row.title === query,
      (row) => row.sessionId.startsWith(query),
      (row) => row.title.includes(query),
    ];
    return ways.map((fits) => all.filter(fits)).find((rows) => rows.length > 0) ?? [];
  }

  #summaries(): SessionSummary[] {
    return [...this.#sessions.values()]
      .filter((session) => messageCount(session) > 0)
      .map((session) => ({
        sessionId: session.sessionId,
        title: session.title,
        createdAt: session.createdAt,
        updatedAt: session.updatedAt,
        messageCount: messageCount(session),
      }))
      .sort((a, b) => b.updatedAt - a.updatedAt || (a.sessionId < b.sessionId ? -1 : 1));
  }

  #delete(sessionId: string): void {
    if (this.#open?.sessionId === sessionId) refuse('SESSION_BUSY', 'the session is open; close it first');
    this.#stored(sessionId);
    this.#sessions.delete(sessionId);
  }

  #info(session: StoredSession): SessionInfo {
    const turn = this.#running?.sessionId === session.sessionId ? this.#running : null;
    const state: SessionState = turn ? (turn.run.cancelled ? 'cancelling' : 'running') : 'idle';
    const model = this.#models().find(({ id }) => id === session.modelId);
    return {
      sessionId: session.sessionId,
      ...(session.title !== '' ? { title: session.title } : {}),
      modelId: session.modelId,
      state,
      ...(turn ? { turnId: turn.turnId } : {}),
      lastSequence: this.#log.lastSequence,
      contextTokens: 200 + Math.ceil(JSON.stringify(session.events.map(withoutImages)).length / 4),
      contextWindow: this.#script.contextWindow ?? model?.contextWindow ?? 0,
      messageCount: messageCount(session),
      createdAt: session.createdAt,
    };
  }

  #models(): NonNullable<MockScript['models']> {
    return this.#script.models ?? [MOCK_MODEL];
  }

  #defaultModel(): string {
    return this.#models()[0]?.id ?? MOCK_MODEL.id;
  }

  #model(modelId: string | null | undefined): string {
    if (modelId == null) return this.#defaultModel();
    if (this.#models().some(({ id }) => id === modelId)) return modelId;
    return refuse('MODEL_NOT_SUPPORTED', `no provider declares the model "${modelId}"`);
  }

  #opened(sessionId: unknown): StoredSession {
    if (this.#open?.sessionId === sessionId) return this.#open as StoredSession;
    return refuse('SESSION_NOT_FOUND', `the session "${String(sessionId)}" is not open`);
  }

  #stored(sessionId: unknown): StoredSession {
    const session = this.#sessions.get(sessionId as string);
    return session ?? refuse('SESSION_NOT_FOUND', `there is no session "${String(sessionId)}"`);
  }
}

const PREFIX = 'plugin:youyou-agent|';

function refuse(code: MockError['code'], message: string): never {
  throw errorOf({ code, message });
}

function blocksOf(content: MessageContent): ContentBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function messageCount({ events }: StoredSession): number {
  return events.filter(({ type }) => type === 'userMessage' || type === 'assistantMessage').length;
}

function withoutImages(event: SessionEvent): SessionEvent {
  if (event.type !== 'userMessage') return event;
  const content = event.content.map((block) => (block.type === 'image' ? { ...block, data: '' } : block));
  return { ...event, content };
}

function sum(a: Usage, b: Usage): Usage {
  return {
    inputTokens: (a.inputTokens ?? 0) + (b.inputTokens ?? 0),
    outputTokens: (a.outputTokens ?? 0) + (b.outputTokens ?? 0),
  };
}

function lastEvent(
  end: RunEnd,
  usage: Usage,
  sessionUsage: Usage,
  contextTokens: number,
  contextWindow: number,
): AgentEventKind {
  if (end.status === 'cancelled') return { type: 'turnCancelled', usage };
  return {
    type: 'turnComplete',
    status: end.status,
    ...(end.status === 'failed' ? { error: end.error } : {}),
    assistantOutput: end.output,
    usage,
    sessionUsage,
    contextTokens,
    contextWindow,
  };
}
