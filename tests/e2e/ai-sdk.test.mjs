// The app's second page: `useChat` of the AI SDK on the same agent, in the real webview.
import assert from "node:assert/strict";
import { onStage, words } from "./stage.mjs";

onStage("useChat over the agent", { shared: true, page: "ai-sdk.html" }, (stage) => {
  stage.promise("sends, shows the tool and its result, and then the answer", async () => {
    const { reply } = await stage.chat.ask("list files");
    await stage.photograph("ai-sdk");
    assert.deepEqual(
      reply.filter(({ kind }) => kind === "tool-card").map(({ tool, state }) => ({ tool, state })),
      [{ tool: "list_dir", state: "done" }],
    );
    assert.match(reply[0].text, /README\.md/);
  });

  stage.promise("stops, and goes on with the next message", async () => {
    const { chat } = stage;
    await chat.send("long answer");
    await chat.untilStreaming(200);
    await chat.press("stop-button");
    await chat.untilIdle();
    const { reply, errors } = await chat.ask("hello");
    assert.deepEqual(errors, []);
    assert.ok(reply.length > 0);
  });

  stage.promise("goes on with a running turn after a reload", async () => {
    const { chat } = stage;
    const { said } = await chat.look();
    await chat.send("long answer");
    const before = await chat.untilStreaming(200);
    await chat.reload();
    // The page shows the history first, and then goes on with what runs.
    const resumed = await chat.until("the same answer, longer", ({ reply }) => (reply[0]?.text.length ?? 0) > before.reply[0].text.length);
    assert.deepEqual(resumed.said, [...said, "long answer"], "nothing is said twice");
    const live = await chat.untilIdle();
    assert.equal(live.answers.length, before.answers.length);
    await chat.reload();
    const stored = await chat.until("the answer from the history", ({ answers }) => answers.length === live.answers.length);
    assert.equal(words(stored.answers.at(-1)), words(live.answers.at(-1)));
  });

  stage.promise("shows a failure with its code, and tries again", async () => {
    const { chat } = stage;
    await chat.send("error");
    const failed = await chat.until("the failure", ({ errors, state }) => errors.length > 0 && state === "idle");
    assert.equal(failed.errors[0].code, "PROVIDER_ERROR");
    await chat.press("retry-button");
    await chat.until("the second attempt", ({ state }) => state === "idle");
    const { errors } = await chat.ask("hello");
    assert.deepEqual(errors, [], "a failure is gone with the next message");
  });
});
