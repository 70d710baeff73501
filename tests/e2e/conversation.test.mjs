// The life of a conversation: it is stopped, reloaded, closed, killed, and nothing of it is lost.
import assert from "node:assert/strict";
import { onStage, words } from "./stage.mjs";
import { Key } from "./webdriver.mjs";

onStage("a conversation in the real window", {}, (stage) => {
  stage.promise("an answer that is stopped keeps what had come, also for the next start of the page", async () => {
    const { chat } = stage;
    await chat.send("long answer");
    const before = await chat.untilStreaming(300);
    await chat.press("stop-button");
    const stopped = await chat.untilIdle();
    await stage.photograph("stopped");
    assert.ok(words(stopped.answers.at(-1)).startsWith(words(before.answers.at(-1)).slice(0, 200)));
    assert.equal(stopped.reply.at(-1).state, "incomplete", "the answer says that it is not whole");

    await chat.reload();
    const again = await chat.until("the stopped answer to be back", ({ answers }) => answers.length > 0);
    assert.equal(words(again.answers.at(-1)), words(stopped.answers.at(-1)));

    const next = await chat.ask("hello");
    assert.ok(next.reply.length > 0, "the session goes on after a stop");
  });

  stage.promise("a session is found again after the app was closed", async () => {
    const { answers } = await stage.chat.ask("list files");
    await stage.chat.close();
    await stage.open();
    await stage.chat.openSession("list files");
    const back = await stage.chat.until("its messages", (screen) => screen.answers.length === answers.length);
    await stage.photograph("found-again");
    assert.deepEqual(back.said, ["list files"]);
    assert.deepEqual(back.answers.map(words), answers.map(words));
    assert.equal(back.tools.length, 1);
  });

  stage.promise("an app killed in mid-answer has the session at the next start and goes on with it", async () => {
    await stage.chat.ask("list files");
    await stage.chat.send("long answer");
    await stage.chat.untilStreaming(100);
    await stage.chat.kill();
    await stage.open();
    await stage.chat.openSession("list files");
    const back = await stage.chat.until("its messages", ({ said }) => said.length === 2);
    assert.deepEqual(back.said, ["list files", "long answer"]);
    const next = await stage.chat.ask("hello");
    assert.ok(next.reply.some(({ kind }) => kind === "message-assistant"));
  });

  stage.promise("the keyboard alone sends and stops", async () => {
    await stage.chat.type("long answer");
    await stage.chat.key(Key.enter);
    await stage.chat.untilStreaming(50);
    await stage.chat.key(Key.escape);
    const { reply } = await stage.chat.untilIdle();
    assert.equal(reply.at(-1).state, "incomplete");
  });
});
