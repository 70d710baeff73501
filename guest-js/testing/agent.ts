/**
 * The mock agent: it answers the commands of the real one.
 */

import type {
  Attachment,
  CompactionOutcome,
  ContentBlock,
  MessageContent,
  ResumeOptions,
  SessionConfig,
  SessionInfo,
  TurnAccepted,
  TurnOutcome,
} from '../bindings.js';
import { MockLog } from './log.js';
import { channelId, MockPage } from './page.js';
import { errorOf, refuse, type MockScript } from './script.js';
import { contextTokens, isUnanswered, messageCount, MockStore, type StoredSession } from './store.js';
import { MockTurns } from './turns.js';

const PREFIX = 'plugin:youyou-agent|';

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
  readonly #store: MockStore;
  readonly #turns: MockTurns;
  /** Requests that started a turn: which, and what they asked. */
  readonly #requests = new Map<string, { turnId: string; asked: string }>();
  /** Requests that were cancelled before they arrived. */
  readonly #cancelledAhead = new Set<string>();
  #open: StoredSession | null = null;
  /** The close that is under way. */
  #closing: Promise<void> | null = null;
  #compaction: { requestId: unknown; stop: AbortController } | null = null;
  #removed = false;
  #sessionCount = 0;

  /** @internal Use {@link mockAgent}. */
  constructor(script: MockScript) {
    this.#script = script;
    this.#page = new MockPage((command, args) => this.#answer(command, args));
    this.#log = new MockLog(this.#page, script.transport);
    this.#store = new MockStore(script);
    this.#turns = new MockTurns(script, this.#store, this.#log);
  }

  /** How many channels the page holds that have not ended. */
  get openChannels(): number {
    return this.#page.callbackCount;
  }

  /** How many subscriptions the agent has. */
  get subscriptions(): number {
    return this.#log.subscriptionCount;
  }

  /** Resumes every turn that is at a `hold` step. */
  release(): void {
    this.#turns.release();
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

  /** Sends a message as another window would, and waits for the end of its turn. */
  async sendFromElsewhere(text: string): Promise<TurnOutcome> {
    const session = this.#open ?? refuse('SESSION_NOT_FOUND', 'no session is open');
    return this.#turns.begin(session, [{ type: 'text', text }], false).ended;
  }

  /** Takes the mock out of the page; a running turn is cancelled, and the page still hears of its end. */
  remove(): void {
    this.#removed = true;
    this.#turns.cancel(null);
    this.#page.remove(this.#turns.running?.ended);
  }

  async #answer(command: string, args: Args): Promise<unknown> {
    const { latencyMs = 0 } = this.#script;
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
    if (this.#removed) throw 'the mock agent was removed';
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
    current_session: { required: [], run: () => this.#open && this.#info(this.#open) },
    send_message: {
      required: ['sessionId', 'content', 'onEvent'],
      run: (args) => this.#send(args, blocksOf(args['content'] as MessageContent), false),
    },
    retry_turn: { required: ['sessionId', 'onEvent'], run: (args) => this.#retry(args) },
    wait_turn: { required: ['turnId'], run: ({ turnId }) => this.#turns.outcome(turnId as string) },
    cancel: { required: [], run: (args) => this.#cancel(args) },
    attach: { required: ['sessionId', 'onEvent'], run: (args) => this.#attach(args) },
    detach: { required: ['subscription'], run: ({ subscription }) => this.#log.unsubscribe(subscription as number) },
    ack: {
      required: ['subscription', 'sequence'],
      run: ({ subscription }) => this.#log.acknowledge(subscription as number),
    },
    compact: { required: ['sessionId'], run: (args) => this.#compact(args) },
    close_session: { required: ['sessionId'], run: ({ sessionId }) => this.#close(this.#opened(sessionId)) },
    session_history: {
      required: ['sessionId'],
      run: ({ sessionId, cursor, limit, withImages }) =>
        this.#store.history(sessionId, cursor as number | null, limit as number | null, withImages as boolean | null),
    },
    list_sessions: {
      required: [],
      run: ({ cursor, limit }) => this.#store.list((cursor ?? null) as string | null, limit as number | null),
    },
    find_sessions: { required: ['query'], run: ({ query }) => this.#store.find(query as string) },
    rename_session: {
      required: ['sessionId', 'title'],
      run: ({ sessionId, title }) => {
        const words = (title as string).trim().replace(/\s+/g, ' ');
        if (words === '') refuse('INVALID_INPUT', 'the title is empty');
        this.#store.get(sessionId).title = words;
      },
    },
    delete_session: { required: ['sessionId'], run: ({ sessionId }) => this.#delete(sessionId as string) },
    list_models: { required: [], run: () => this.#store.models },
    list_tools: { required: [], run: () => this.#script.tools ?? [] },
    list_skills: { required: [], run: () => this.#script.skills ?? [] },
  };

  async #create(config: SessionConfig): Promise<SessionInfo> {
    const modelId = this.#store.model(config.modelId);
    await this.#freeSlot(config.replace);
    this.#sessionCount += 1;
    this.#open = this.#store.create(`session-${this.#sessionCount}-${Date.now().toString(36)}`, modelId);
    this.#open.title = config.title ?? '';
    return this.#info(this.#open);
  }

  async #resume(sessionId: string, options: ResumeOptions): Promise<SessionInfo> {
    const session = this.#store.get(sessionId);
    const modelId = options.modelId == null ? session.modelId : this.#store.model(options.modelId);
    await this.#freeSlot(options.replace);
    session.modelId = modelId;
    this.#open = session;
    return this.#info(session);
  }

  async #freeSlot(replace: boolean | undefined): Promise<void> {
    if (!this.#open) return;
    if (!replace) refuse('SESSION_BUSY', 'another session is open; close it first, or pass replace: true');
    await this.#close(this.#open);
  }

  async #close(session: StoredSession): Promise<void> {
    if (this.#closing) return this.#closing;
    this.#closing = this.#closeNow(session).finally(() => {
      this.#closing = null;
    });
    return this.#closing;
  }

  async #closeNow(session: StoredSession): Promise<void> {
    this.#turns.cancel(null);
    this.#stopCompaction();
    await this.#turns.running?.ended;
    if (session.events.length === 0) this.#store.delete(session.sessionId);
    this.#log.closeSession(session.sessionId);
    session.unstored = null;
    this.#open = null;
  }

  #send(args: Args, content: ContentBlock[], retry: boolean): TurnAccepted {
    const session = this.#opened(args['sessionId']);
    const channel = channelId(args['onEvent']);
    this.#log.checkRoom();
    const { requestId, options } = args as { requestId: string | null; options: unknown };
    const asked = JSON.stringify([retry, session.sessionId, retry ? null : content, options]);
    const turnId = this.#startedBy(requestId, asked) ?? this.#start(session, content, retry, options, requestId);
    if (requestId != null) this.#requests.set(requestId, { turnId, asked });
    const runningTurnId = this.#turns.running?.turnId === turnId ? turnId : null;
    return { turnId, subscription: this.#log.subscribe(channel, session.sessionId, { turnId, after: 0, runningTurnId }) };
  }

  /** The turn that a request has started before. */
  #startedBy(requestId: string | null, asked: string): string | null {
    if (requestId == null) return null;
    if ([...requestId].length > 128) refuse('INVALID_INPUT', 'the requestId is too long; it may have at most 128 characters');
    const known = this.#requests.get(requestId);
    if (known && known.asked !== asked) {
      refuse('INVALID_INPUT', 'this page has used the requestId for another request; each request needs an id of its own');
    }
    return known?.turnId ?? null;
  }

  #start(
    session: StoredSession,
    content: ContentBlock[],
    retry: boolean,
    options: unknown,
    requestId: string | null,
  ): string {
    this.#idle(session.sessionId);
    const { modelId = null } = (options ?? {}) as { modelId?: string | null };
    const newModel = modelId === null ? session.modelId : this.#store.model(modelId);
    const { turnId } = this.#turns.begin(session, content, retry);
    session.modelId = newModel;
    if (requestId !== null && this.#cancelledAhead.delete(requestId)) this.#turns.cancel(turnId);
    return turnId;
  }

  #retry(args: Args): TurnAccepted {
    const session = this.#opened(args['sessionId']);
    const isRepeat = this.#requests.has(args['requestId'] as string);
    if (!isRepeat && !this.#turns.running && session.unstored === null && !isUnanswered(session)) {
      refuse('INVALID_INPUT', 'there is no failed or cancelled turn to run again; send a message');
    }
    const last = session.events.findLast((event) => event.type === 'userMessage');
    return this.#send(args, session.unstored ?? (last?.type === 'userMessage' ? last.content : []), true);
  }

  #cancel({ turnId, requestId }: Args): boolean {
    if (turnId != null) return this.#turns.cancel(turnId as string);
    if (requestId == null) return this.#turns.cancel(null) || this.#stopCompaction();
    if (this.#compaction?.requestId === requestId) return this.#stopCompaction();
    const started = this.#requests.get(requestId as string);
    if (started !== undefined) return this.#turns.cancel(started.turnId);
    this.#cancelledAhead.add(requestId as string);
    return false;
  }

  #attach({ sessionId, afterSequence, onEvent }: Args): Attachment {
    const session = this.#opened(sessionId);
    const channel = channelId(onEvent);
    this.#log.checkRoom();
    // Without a number: from the start of the running turn, or from now on.
    const after = (afterSequence as number | null) ?? this.#turns.running?.startSequence ?? null;
    const { state, turnId = null, lastSequence } = this.#info(session);
    const subscription = this.#log.subscribe(channel, session.sessionId, { after, runningTurnId: turnId });
    return { subscription, state, turnId, lastSequence };
  }

  async #compact({ sessionId, requestId }: Args): Promise<CompactionOutcome> {
    const session = this.#idle(sessionId);
    if (this.#turns.running) refuse('SESSION_BUSY', 'a turn is running; wait for its end or cancel it');
    const stop = new AbortController();
    if (this.#cancelledAhead.delete(requestId as string)) stop.abort();
    this.#compaction = { requestId, stop };
    await pause(this.#script.compactMs ?? 0, stop.signal);
    this.#compaction = null;
    if (stop.signal.aborted) refuse('REQUEST_CANCELLED', 'the compaction was cancelled');
    return this.#store.compact(session);
  }

  #stopCompaction(): boolean {
    this.#compaction?.stop.abort();
    return this.#compaction !== null;
  }

  #delete(sessionId: string): void {
    if (this.#open?.sessionId === sessionId) refuse('SESSION_BUSY', 'the session is open; close it first');
    this.#store.delete(sessionId);
  }

  #info(session: StoredSession): SessionInfo {
    const { running } = this.#turns;
    return {
      sessionId: session.sessionId,
      ...(session.title !== '' ? { title: session.title } : {}),
      modelId: session.modelId,
      state: running ? (running.run.cancelled ? 'cancelling' : 'running') : this.#compaction ? 'compacting' : 'idle',
      ...(running ? { turnId: running.turnId } : {}),
      lastSequence: this.#log.lastSequence,
      contextTokens: contextTokens(session),
      contextWindow: this.#turns.contextWindow(session),
      messageCount: messageCount(session),
      createdAt: session.createdAt,
    };
  }

  #opened(sessionId: unknown): StoredSession {
    if (this.#open && this.#open.sessionId === sessionId) return this.#open;
    return refuse('SESSION_NOT_FOUND', `the session "${String(sessionId)}" is not open`);
  }

  /** The open session, which neither is being closed nor compacted. */
  #idle(sessionId: unknown): StoredSession {
    const session = this.#opened(sessionId);
    if (this.#closing) refuse('SESSION_NOT_FOUND', 'the session is closed; resume it or create another');
    if (this.#compaction) refuse('SESSION_BUSY', 'the context is being compacted; wait for its end or cancel it');
    return session;
  }
}

/** Waits, until the signal fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted || ms === 0) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

function blocksOf(content: MessageContent): ContentBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}
