// The chat app in its real window, with the offline demo model: what a person sees and never loses.
// `node scripts/test.mjs e2e` builds the app, names it in YOUYOU_CHAT_PROGRAM and runs this file.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Chat } from "./chat.mjs";
import { Display, createDataFolder, removeDataFolder } from "./launch.mjs";
import { Key } from "./webdriver.mjs";

const program = process.env.YOUYOU_CHAT_PROGRAM;
assert.ok(program, "YOUYOU_CHAT_PROGRAM must name the built chat app: run `npm run test:e2e`");

const PICTURES = fileURLToPath(new URL("../../target/e2e/", import.meta.url));
const LIMIT = { timeout: 120_000 };

/** Text as words: how a renderer breaks lines is not what is compared. */
const words = (text) => text.split(/\s+/).join(" ");

describe("a conversation in the real window", { timeout: 8 * LIMIT.timeout }, () => {
  let display;
  let dataFolder;
  let chat;

  /** A test that leaves a picture of what was on the screen when it failed. */
  const promise = (name, body) =>
    test(name, LIMIT, async () => {
      try {
        await body();
      } catch (error) {
        const picture = await chat?.photograph(PICTURES, `failed-${name.replace(/\W+/g, "-")}`).catch(() => null);
        if (picture) error.message += `\nThe picture is in ${picture}`;
        throw error;
      }
    });

  const open = async () => {
    chat = await Chat.open({ program, display, dataFolder });
  };

  before(async () => {
    display = await Display.start();
  });
  after(() => display?.stop());
  beforeEach(async () => {
    dataFolder = await createDataFolder();
    await open();
  });
  afterEach(async () => {
    await chat?.close();
    chat = undefined;
    await removeDataFolder(dataFolder);
  });

  promise("a request that needs a tool shows the tool's card and then the answer", async () => {
    const { reply } = await chat.ask("list files");
    await chat.photograph(PICTURES, "tool-call");
    assert.deepEqual(
      reply.filter(({ kind }) => kind === "tool-card").map(({ tool, state }) => ({ tool, state })),
      [{ tool: "list_dir", state: "done" }],
    );
    assert.equal(reply.at(-1).kind, "message-assistant", "the answer comes behind the card");
    assert.ok(reply.at(-1).text);
  });

  promise("an answer that is stopped keeps what had come, also for the next start of the page", async () => {
    await chat.send("long answer");
    const before = await chat.untilStreaming(300);
    await chat.photograph(PICTURES, "streaming");
    await chat.press("stop-button");
    const stopped = await chat.until("the turn to be stopped", ({ state }) => state === "idle", 5_000);
    await chat.photograph(PICTURES, "stopped");
    assert.ok(words(stopped.answers.at(-1)).startsWith(words(before.answers.at(-1)).slice(0, 200)));

    await chat.reload();
    const again = await chat.until("the stopped answer to be back", ({ answers }) => answers.length > 0);
    assert.equal(words(again.answers.at(-1)), words(stopped.answers.at(-1)));

    const next = await chat.ask("hello");
    assert.ok(next.reply.length > 0, "the session goes on after a stop");
  });

  promise("the keyboard alone sends and stops", async () => {
    await chat.type("long answer");
    await chat.key(Key.enter);
    await chat.untilStreaming(50);
    await chat.key(Key.escape);
    await chat.until("the turn to be stopped", ({ state }) => state === "idle", 5_000);
  });

  // F4
  promise("a page reloaded in mid-stream goes on without a gap and without a double", async () => {
    await chat.send("long answer");
    await chat.untilStreaming(300);
    await chat.reload();
    const resumed = await chat.untilStreaming(300);
    assert.deepEqual(resumed.said, ["long answer"], "the turn still runs behind the new page");
    await chat.photograph(PICTURES, "reloaded");
    const live = await chat.until("the end of the answer", ({ state }) => state === "idle", 60_000);

    // Now from the stored history alone: what the storage holds is what was streamed.
    await chat.reload();
    const stored = await chat.until("the answer from the history", ({ answers }) => answers.length > 0);
    assert.equal(stored.answers.length, live.answers.length);
    assert.equal(words(live.answers.at(-1)), words(stored.answers.at(-1)));
  });

  promise("a session is found again after the app was closed", async () => {
    const { answers } = await chat.ask("list files");
    await chat.close();
    await open();
    const { sessions } = await chat.until("the session in the sidebar", (screen) => screen.sessions.length > 0);
    await chat.openSession(sessions[0]);
    const back = await chat.until("its messages", (screen) => screen.answers.length > 0);
    await chat.photograph(PICTURES, "found-again");
    assert.deepEqual(back.said, ["list files"]);
    assert.deepEqual(back.answers, answers);
    assert.equal(back.tools.length, 1);
  });

  promise("an app killed in mid-answer has the session at the next start and goes on with it", async () => {
    await chat.ask("list files");
    await chat.send("long answer");
    await chat.untilStreaming(100);
    await chat.kill();
    await open();
    const { sessions } = await chat.until("the session in the sidebar", (screen) => screen.sessions.length > 0);
    await chat.openSession(sessions[0]);
    const back = await chat.until("its messages", ({ said }) => said.length === 2);
    assert.deepEqual(back.said, ["list files", "long answer"]);
    const next = await chat.ask("hello");
    assert.ok(next.reply.length > 0);
  });

  promise("an unknown skill is refused with its code and the draft stays", async () => {
    await chat.send("/nosuchskill please");
    const { errors, draft, said } = await chat.until("a refusal", (screen) => screen.errors.length > 0);
    await chat.photograph(PICTURES, "refused");
    assert.deepEqual(errors.map(({ code }) => code), ["SKILL_NOT_FOUND"]);
    assert.match(errors[0].text, /nosuchskill/);
    assert.equal(draft, "/nosuchskill please");
    assert.deepEqual(said, [], "a refused message is no message");

    await chat.clearDraft();
    const { reply } = await chat.ask("hello");
    assert.ok(reply.length > 0, "the corrected message is answered");
  });

  promise("a failed turn says what went wrong and can be tried again", async () => {
    const failed = await chat.ask("error");
    await chat.photograph(PICTURES, "failed");
    assert.equal(failed.errors.length, 1);
    assert.ok(failed.errors[0].code, "the note carries the error's code");
    assert.ok(failed.errors[0].text.length > 20, "the note says more than a code");
    await chat.press("retry-button");
    await chat.until("the second attempt to end", ({ state, reply }) => state === "idle" && reply.length > 0);
    assert.deepEqual((await chat.look()).said, ["error"], "the message is not said twice");
  });
});
