/**
 * A stand-in for what Tauri puts into a page: callbacks by number and `invoke`.
 *
 * Arguments and answers go through JSON like the real ones, so that what would not survive
 * the way to Rust does not survive it here.
 */

interface Internals {
  invoke(command: string, args?: Record<string, unknown>): Promise<unknown>;
  transformCallback(callback: (message: unknown) => void, once?: boolean): number;
  unregisterCallback(id: number): void;
  runCallback(id: number, message: unknown): void;
  metadata: unknown;
}

interface PageWindow {
  __TAURI_INTERNALS__?: Partial<Internals>;
}

/** Answers a command; what it throws rejects the call as it is. */
export type CommandHandler = (command: string, args: Record<string, unknown>) => Promise<unknown>;

/** The mocked page. */
export class MockPage {
  readonly #callbacks = new Map<number, (message: unknown) => void>();
  readonly #restore: () => void;
  #nextCallback = 1;
  #removed = false;

  constructor(handler: CommandHandler) {
    const scope = globalThis as { window?: PageWindow };
    const hadWindow = scope.window !== undefined;
    // Outside a browser the page is the global scope itself.
    const page = (scope.window ??= globalThis as PageWindow);
    const before = page.__TAURI_INTERNALS__;
    const internals: Internals = {
      invoke: async (command, args = {}) => json(await handler(command, json(args) as Record<string, unknown>)),
      transformCallback: (callback, once = false) => {
        const id = this.#nextCallback++;
        this.#callbacks.set(id, (message) => {
          if (once) this.#callbacks.delete(id);
          callback(message);
        });
        return id;
      },
      unregisterCallback: (id) => {
        this.#callbacks.delete(id);
      },
      runCallback: (id, message) => this.send(id, message),
      metadata: { currentWindow: { label: 'main' }, currentWebview: { windowLabel: 'main', label: 'main' } },
    };
    page.__TAURI_INTERNALS__ = { ...before, ...internals };
    this.#restore = () => {
      if (before) page.__TAURI_INTERNALS__ = before;
      else delete page.__TAURI_INTERNALS__;
      if (!hadWindow) delete scope.window;
    };
  }

  /** How many callbacks the page holds: channels that have not ended. */
  get callbackCount(): number {
    return this.#callbacks.size;
  }

  /** Calls a callback; one that does not exist (any more) hears nothing, as in Tauri. */
  send(id: number, message: unknown): void {
    // Of a page that is as it was, a channel cannot take its own callback out.
    if (this.#removed && isEnd(message)) this.#callbacks.delete(id);
    else this.#callbacks.get(id)?.(json(message));
  }

  /** Forgets all callbacks, as a reload of the page does. */
  reload(): void {
    this.#callbacks.clear();
  }

  /** Puts the page back as it was; callbacks are forgotten once `last` and what it sent have gone out. */
  remove(last?: Promise<unknown>): void {
    this.#restore();
    this.#removed = true;
    if (last) void last.finally(() => setTimeout(() => this.#callbacks.clear(), 0));
    else this.#callbacks.clear();
  }
}

/** Whether a message of a channel is its last. */
function isEnd(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'end' in message;
}

/** Number of the callback behind a serialised channel. */
export function channelId(value: unknown): number {
  const match = typeof value === 'string' ? /^__CHANNEL__:(\d+)$/.exec(value) : null;
  if (!match) throw `invalid args \`onEvent\`: expected a channel, got ${JSON.stringify(value)}`;
  return Number(match[1]);
}

function json(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
