// The chat app as a person sees it: what is on the screen, and what one can do about it.
// Tests speak in these words; only this file and in-page.mjs know the page's `data-testid`s.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { COLLECT, FILE, LOOK, NONE_STORED, REOPENED, WATCH_PAUSES } from "./in-page.mjs";
import { RunningApp } from "./launch.mjs";
import { Key, until } from "./webdriver.mjs";

/** What an answer of the demo may take from its first to its last word on a loaded machine. */
const ANSWER_MS = 60_000;

const testId = (id) => `[data-testid="${id}"]`;

/** The open chat app. */
export class Chat {
  #app;

  constructor(app) {
    this.#app = app;
  }

  /** Starts the app and waits until one can type. */
  static async open(options) {
    const chat = new Chat(await RunningApp.start(options));
    try {
      await chat.untilReady();
    } catch (error) {
      await chat.kill();
      throw new Error(`${error.message}\n${chat.#app.output}`, { cause: error });
    }
    return chat;
  }

  get browser() {
    return this.#app.browser;
  }

  /** The resident memory of the app and of its pages, in bytes. */
  memory() {
    return this.#app.memory();
  }

  /** The same, without what the page holds only because WebKit has not collected it yet. */
  async memoryCollected() {
    // The second time takes what the first has set free, and memory goes back to the system a moment later.
    let least = await this.memory();
    for (let round = 0; round < 4; round += 1) {
      await this.browser.evaluate(COLLECT);
      await sleep(1_500);
      const now = await this.memory();
      least = { app: Math.min(least.app, now.app), web: Math.min(least.web, now.web) };
    }
    return least;
  }

  close() {
    return this.#app.close();
  }

  kill() {
    return this.#app.kill();
  }

  /** What is on the screen now. */
  async look() {
    const screen = await this.browser.evaluate(LOOK);
    const entries = (kind) => screen.entries.filter((entry) => entry.kind === kind);
    const said = entries("message-user");
    return {
      ...screen,
      said: said.map(({ text }) => text),
      answers: entries("message-assistant").map(({ text }) => text),
      tools: entries("tool-card"),
      errors: entries("error-note"),
      /** What came after the person's last message. */
      reply: said.length ? screen.entries.slice(screen.entries.lastIndexOf(said.at(-1)) + 1) : screen.entries,
    };
  }

  /** Waits until the screen is as described and answers it; on failure the last screen is told. */
  async until(what, condition, limitMs) {
    let screen;
    try {
      return await until(
        what,
        async () => {
          screen = await this.look();
          return condition(screen) && screen;
        },
        limitMs,
      );
    } catch (error) {
      const short = (_, value) => (typeof value === "string" && value.length > 160 ? `${value.slice(0, 80)} … ${value.slice(-80)}` : value);
      error.message += `\nThe screen was: ${JSON.stringify(screen, short, 1)}`;
      throw error;
    }
  }

  untilReady() {
    return this.until("the chat to open", ({ ready, state }) => ready && state !== null, ANSWER_MS);
  }

  /** Types a message and presses the send button. */
  async send(text) {
    await this.type(text);
    await this.press("send-button");
  }

  /** Types into the composer, behind what is there. */
  async type(text) {
    await (await this.element("composer-input")).type(text);
  }

  /** Types a key that has no character, e.g. `Key.escape`, into the composer. */
  async key(key) {
    await this.type(key);
  }

  /** Empties the composer the way a person does. */
  async clearDraft() {
    const { draft } = await this.look();
    if (draft === "") return;
    await this.key(Key.backspace.repeat(draft.length));
    await this.until("an empty composer", (screen) => screen.draft === "");
  }

  /** Clicks what carries this test id, once it is there and can be clicked. */
  async press(id) {
    await until(`${id} to be enabled`, async () => {
      const found = await this.browser.find(testId(id));
      if (!found || !(await found.isEnabled())) return false;
      await found.click();
      return true;
    });
  }

  /** Clicks the session with this title in the sidebar. */
  async openSession(title) {
    await until(`the session "${title}" in the sidebar`, async () => {
      // WebKitWebDriver answers no text for these rows, so the page itself is asked which one it is.
      const { sessions } = await this.look();
      const item = (await this.browser.all(`${testId("session-item")} .session-open`))[sessions.indexOf(title)];
      await item?.click();
      return item !== undefined;
    });
  }

  /** Deletes the newest session in the sidebar, which happens when the time to undo it is over. */
  async deleteNewestSession() {
    // By the page, not by the pointer: the button is seen only while the pointer is over its row.
    await this.browser.evaluate(`document.querySelector('${testId("session-delete")}').click();`);
  }

  /** Whether the backend has no session left, whatever the sidebar shows. */
  async hasNoSession() {
    return this.browser.evaluate(NONE_STORED);
  }

  /** The next deletion finds the newest session open again, as if another window had just opened it. */
  async reopenBeforeDeletion() {
    const row = await this.element("session-item");
    await this.browser.evaluate(REOPENED, await row.attribute("data-id"));
  }

  /** Leaves the session on the screen for a new chat with an empty composer. */
  async startAnew() {
    await this.press("new-session");
    await this.until("a new chat", ({ entries, state }) => entries.length === 0 && state === "idle");
    await this.clearDraft();
  }

  /** Sends a message, waits for the end of its turn and answers the screen. */
  async ask(text, limitMs = ANSWER_MS) {
    await this.send(text);
    return this.untilAnswered(text, limitMs);
  }

  untilIdle(limitMs = ANSWER_MS) {
    return this.until("the end of the turn", ({ state }) => state === "idle", limitMs);
  }

  untilAnswered(text, limitMs = ANSWER_MS) {
    return this.until(
      `the end of the turn "${text}"`,
      ({ said, reply, state }) => said.at(-1)?.includes(text) && reply.some((entry) => entry.text) && state === "idle",
      limitMs,
    );
  }

  /** Waits for a running turn whose answer has at least so many characters, and answers the screen. */
  untilStreaming(characters) {
    return this.until(
      `a running answer of ${characters} characters`,
      // Of the newest message: the answer before it may be as long.
      ({ state, reply }) =>
        state === "running" && (reply.findLast(({ kind }) => kind === "message-assistant")?.text.length ?? 0) >= characters,
    );
  }

  /** Unfolds the tool cards that are folded, so that arguments and results can be read. */
  async unfoldTools() {
    // By the page, not by the pointer: every card that opens moves the next one, maybe out of sight.
    await this.browser.evaluate(`
      for (const head of document.querySelectorAll('${testId("tool-card")} [aria-expanded="false"]')) head.click();`);
    return this.until("unfolded tool cards", ({ tools }) => tools.every((tool) => tool.output !== null));
  }

  /** Gives files to the composer, as its file dialog would. */
  async attach(...paths) {
    await (await this.element("file-input")).type(paths.join("\n"));
  }

  /** Drops a file onto the window, as far as the page can tell. */
  async drop(name, type, bytes) {
    await this.browser.evaluate(
      `${FILE}
      for (const kind of ["dragover", "drop"]) {
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
      }`,
      name,
      type,
      bytes.toString("base64"),
    );
  }

  /** Pastes a file into the composer, as a copied picture comes from the clipboard. */
  async paste(name, type, bytes) {
    await this.browser.evaluate(
      `${FILE}
      const event = new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true });
      document.querySelector('${testId("composer-input")}').dispatchEvent(event);`,
      name,
      type,
      bytes.toString("base64"),
    );
  }

  /** From now on: how long the page draws nothing, and how long a timer of it waits. */
  async watchPauses() {
    await this.browser.evaluate(WATCH_PAUSES);
  }

  /** The longest pauses since the watch began, in milliseconds. */
  longestPauses() {
    return this.browser.evaluate("return window.pauses;");
  }

  /** Opens another window of the app and switches to it; answers the handles of the first and the second. */
  async openWindow() {
    const before = await this.browser.windows();
    await this.press("new-window");
    const second = await until("a second window", async () =>
      (await this.browser.windows()).find((handle) => !before.includes(handle)),
    );
    await this.browser.switchTo(second);
    await this.untilReady();
    return [before[0], second];
  }

  /** How many of the page's functions the backend may still call: open channels and unanswered commands. */
  openCallbacks() {
    return this.browser.evaluate("return window.__TAURI_INTERNALS__.callbacks.size;");
  }

  async element(id) {
    return until(`${id} to appear`, () => this.browser.find(testId(id)));
  }

  async reload() {
    await this.browser.reload();
    await this.untilReady();
  }

  /** Opens another page of the app. */
  async go(page) {
    await this.browser.go(new URL(page, await this.browser.address()).href);
    await this.untilReady();
  }

  /**
   * Writes what is seen as a PNG into the folder.
   *
   * WebKit answers the first screenshot with the frame before the last change, so pictures are taken
   * until two are the same; a page that keeps moving is taken as the second one shows it.
   */
  async photograph(folder, name) {
    await mkdir(folder, { recursive: true });
    const { state } = await this.look();
    await this.browser.screenshot();
    let picture = await this.browser.screenshot();
    for (let attempt = 0; state === "idle" && attempt < 8; attempt += 1) {
      const next = await this.browser.screenshot();
      if (next.equals(picture)) break;
      picture = next;
    }
    const file = join(folder, `${name}.png`);
    await writeFile(file, picture);
    return file;
  }
}
