// Two windows of one app: one agent, one turn, seen live in both.
import assert from "node:assert/strict";
import { onStage, words } from "./stage.mjs";

onStage("two windows", {}, (stage) => {
  // F5, F7
  stage.promise("show one turn live, and each can stop it", async () => {
    const { chat } = stage;
    await chat.ask("hello");
    const [first, second] = await chat.openWindow();
    await chat.until("the open session in the second window", ({ said }) => said.length === 1);

    await chat.browser.switchTo(first);
    await chat.send("long answer");
    await chat.untilStreaming(100);
    await chat.browser.switchTo(second);
    await chat.untilStreaming(200);
    const watched = await chat.until("the words that the other window sent", ({ said }) => said.length === 2);
    assert.deepEqual(watched.said, ["hello", "long answer"]);
    await stage.photograph("second-window");
    await chat.press("stop-button");
    const there = await chat.untilIdle();
    await chat.browser.switchTo(first);
    const here = await chat.untilIdle();
    assert.equal(words(here.answers.at(-1)), words(there.answers.at(-1)), "both have the same words");

    await chat.send("long answer");
    await chat.browser.switchTo(second);
    await chat.untilStreaming(100);
    await chat.browser.switchTo(first);
    await chat.browser.closeWindow();
    await chat.browser.switchTo(second);
    const live = await chat.untilIdle();
    assert.match(words(live.answers.at(-1)), /ask again\.$/, "the turn of a closed window goes on to its end");
    assert.deepEqual(live.said, ["hello", "long answer", "long answer"]);
    await chat.reload();
    const stored = await chat.until("the answers from the history", ({ answers }) => answers.length === live.answers.length);
    assert.deepEqual(stored.answers.map(words), live.answers.map(words));
  });
});
