// Where every end-to-end test plays: a display, a fresh data folder, the open app, and a picture when
// something fails. `npm run test:e2e` names the built app in YOUYOU_CHAT_PROGRAM.
import assert from "node:assert/strict";
import { after, before, beforeEach, afterEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Chat } from "./chat.mjs";
import { Display, createDataFolder, removeDataFolder } from "./launch.mjs";

/** Where the pictures of a run go. */
export const PICTURES = fileURLToPath(new URL("../../target/e2e/", import.meta.url));

/** What one promise may take on a machine that has much else to do. */
const LIMIT_MS = 180_000;

/**
 * A group of promises about the app in its real window.
 *
 * `body` gets the stage: `stage.chat` is the open app, `stage.promise` makes a test. With `shared`
 * all promises follow one another in one running app, which is much quicker; without it each has an app
 * and a data folder of its own. `page` is another page of the app than its first.
 */
export function onStage(name, { shared = false, page } = {}, body) {
  const program = process.env.YOUYOU_CHAT_PROGRAM;
  assert.ok(program, "YOUYOU_CHAT_PROGRAM must name the built chat app: run `npm run test:e2e`");
  describe(name, () => {
    const stage = new Stage(program, page);
    before(() => stage.raise());
    after(() => stage.strike());
    if (shared) {
      before(() => stage.open());
      if (!page) beforeEach(() => stage.chat.startAnew());
    } else {
      beforeEach(() => stage.open());
      afterEach(() => stage.clear());
    }
    body(stage);
  });
}

class Stage {
  #program;
  #page;
  #display;
  /** The open app. */
  chat;
  /** Where the app keeps its things. */
  dataFolder;

  constructor(program, page) {
    this.#program = program;
    this.#page = page;
  }

  async raise() {
    this.#display = await Display.start();
  }

  /** Opens the app; what an earlier start in this test stored is still there. */
  async open() {
    this.dataFolder ??= await createDataFolder();
    this.chat = await Chat.open({ program: this.#program, display: this.#display, dataFolder: this.dataFolder });
    if (this.#page) await this.chat.go(this.#page);
  }

  /** Ends the app and forgets all it stored. */
  async clear() {
    await this.chat?.close();
    this.chat = undefined;
    if (this.dataFolder) await removeDataFolder(this.dataFolder);
    this.dataFolder = undefined;
  }

  async strike() {
    await this.clear();
    await this.#display?.stop();
  }

  /** A test that leaves a picture of what was on the screen when it failed. */
  promise(name, body, { limitMs = LIMIT_MS } = {}) {
    test(name, { timeout: limitMs }, async () => {
      try {
        await body();
      } catch (error) {
        const picture = await this.photograph(`failed-${name.replace(/\W+/g, "-")}`).catch(() => null);
        if (picture) error.message += `\nThe picture is in ${picture}`;
        throw error;
      }
    });
  }

  /** Takes a picture of the window. */
  photograph(name) {
    return this.chat.photograph(PICTURES, name);
  }
}

/** Text as words: how a renderer breaks lines is not what is compared. */
export const words = (text) => text.split(/\s+/).join(" ").trim();
