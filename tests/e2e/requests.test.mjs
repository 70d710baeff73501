// What one asks for and gets: tools, refusals, failures, attachments, and much at once.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bigPng } from "./png.mjs";
import { onStage } from "./stage.mjs";

const calls = (reply) => reply.filter(({ kind }) => kind === "tool-card").map(({ tool, state }) => ({ tool, state }));

onStage("requests in the real window", { shared: true }, (stage) => {
  stage.promise("a request that needs a tool shows the tool's card and then the answer", async () => {
    const { reply } = await stage.chat.ask("list files");
    assert.deepEqual(calls(reply), [{ tool: "list_dir", state: "done" }]);
    assert.equal(reply.at(-1).kind, "message-assistant", "the answer comes behind the card");
    assert.match(reply.at(-1).text, /README\.md/, "the answer knows what the tool found");
    const { tools } = await stage.chat.unfoldTools();
    await stage.photograph("tool-call");
    assert.match(tools[0].output, /README\.md/, "the card shows the tool's result");
  });

  stage.promise("two files read at once are two cards, each with its own file", async () => {
    const { reply } = await stage.chat.ask("read README.md and Cargo.toml");
    assert.deepEqual(calls(reply), [
      { tool: "read_file", state: "done" },
      { tool: "read_file", state: "done" },
    ]);
    const { tools } = await stage.chat.unfoldTools();
    await stage.photograph("two-tools");
    assert.deepEqual(tools.map((tool) => JSON.parse(tool.arguments)), [{ path: "README.md" }, { path: "Cargo.toml" }]);
    assert.match(tools[0].output, /Your workspace/);
    assert.match(tools[1].output, /\[package\]/);
  });

  stage.promise("a file written by a tool is in the workspace", async () => {
    const { reply } = await stage.chat.ask("write notes.txt: hello");
    assert.deepEqual(calls(reply), [{ tool: "write_file", state: "done" }]);
    assert.equal((await readFile(join(stage.dataFolder, "workspace", "notes.txt"), "utf8")).trim(), "hello");
  });

  stage.promise("a tool that fails says so in its card, and the turn goes on", async () => {
    const { reply, errors } = await stage.chat.ask("read nowhere.txt");
    assert.deepEqual(calls(reply), [{ tool: "read_file", state: "error" }]);
    assert.equal(reply.at(-1).kind, "message-assistant");
    assert.deepEqual(errors, [], "a tool's failure is not the turn's");
  });

  stage.promise("an unknown skill is refused with its code and the draft stays, also over a reload", async () => {
    const { chat } = stage;
    await chat.send("/nosuchskill please");
    const { errors, draft, said } = await chat.until("a refusal", (screen) => screen.errors.length > 0);
    await stage.photograph("refused");
    assert.deepEqual(errors.map(({ code }) => code), ["SKILL_NOT_FOUND"]);
    assert.match(errors[0].text, /nosuchskill/);
    assert.equal(draft, "/nosuchskill please");
    assert.deepEqual(said, [], "a refused message is no message");

    await chat.reload();
    assert.equal((await chat.look()).draft, "/nosuchskill please");

    await chat.clearDraft();
    const { reply } = await chat.ask("hello");
    assert.ok(reply.length > 0, "the corrected message is answered");
  });

  stage.promise("a failed turn says what went wrong and can be tried again", async () => {
    const { chat } = stage;
    const failed = await chat.ask("error");
    await stage.photograph("failed");
    assert.deepEqual(failed.errors.map(({ code, canRetry }) => ({ code, canRetry })), [{ code: "PROVIDER_ERROR", canRetry: true }]);
    assert.ok(failed.errors[0].text.length > 40, "the note says more than a code");

    await chat.press("retry-button");
    const again = await chat.until("the second attempt to fail as well", ({ state, errors }) => state === "idle" && errors.length === 1);
    assert.deepEqual(again.said, ["error"], "the message is not said twice");

    const next = await chat.ask("hello");
    assert.equal(next.errors.filter(({ canRetry }) => canRetry).length, 0, "a failure that is over offers nothing");
  });

  stage.promise("a conversation that no longer fits is made smaller, and the answer comes", async () => {
    for (const text of ["hello", "list files", "hello"]) await stage.chat.ask(text);
    const { reply, errors } = await stage.chat.ask("overflow");
    await stage.photograph("overflow");
    assert.deepEqual(errors, []);
    assert.equal(reply.at(-1).kind, "message-assistant");
    assert.ok(await stage.chat.browser.find('[data-testid="compaction-divider"]'), "the thread says where it was made smaller");
  });

  stage.promise("the context is made smaller by hand, and the thread says where", async () => {
    const { chat } = stage;
    for (const text of ["hello", "list files", "hello"]) await chat.ask(text);
    await chat.press("context-meter");
    await stage.photograph("context-meter");
    await chat.press("compact-button");
    await chat.element("compaction-divider");
    await chat.press("context-meter");
    await stage.photograph("compacted");
    const { reply } = await chat.ask("hello again");
    assert.equal(reply.at(-1).kind, "message-assistant");
  });

  // F16
  stage.promise("a burst of 20,000 pieces arrives whole, and the page stays responsive", async () => {
    const { chat } = stage;
    await chat.watchPauses();
    await chat.send("flood 20000");
    await chat.press("memory-button");
    await chat.element("memory-panel");
    await chat.press("memory-button");
    const { answers } = await chat.untilAnswered("flood 20000");
    // The demo repeats a word of nine letters and a blank.
    assert.equal(answers.at(-1), Array(2_000).fill("abcdefghi").join(" "));
    await stage.photograph("burst");
    const { frame } = await chat.longestPauses();
    assert.ok(frame < 2_000, `the page stood still for ${Math.round(frame)} ms`);
  });

  stage.promise("a picture of 5 MB is shown, sent, and there again after a reload", async () => {
    const { chat } = stage;
    const file = join(stage.dataFolder, "big.png");
    await writeFile(file, bigPng(5_000_000));
    await chat.attach(file);
    await chat.until("its preview", ({ previews }) => previews === 1);
    await chat.type("what is this?");
    await chat.press("send-button");
    const { reply, errors, pictures } = await chat.untilAnswered("what is this?");
    await stage.photograph("picture");
    assert.deepEqual(errors, []);
    assert.ok(reply.length > 0);
    assert.equal(pictures, 1, "the message shows the picture");

    await chat.reload();
    await chat.until("the picture from the history", (screen) => screen.pictures === 1);
  });

  stage.promise("a file that is neither text nor picture is refused by name, and nothing else is lost", async () => {
    const { chat } = stage;
    const file = join(stage.dataFolder, "thing.bin");
    await writeFile(file, Buffer.from([0, 1, 2, 255, 254, 0]));
    await chat.type("look at this");
    await chat.attach(file);
    const { notices, draft, previews } = await chat.until("a notice", (screen) => screen.notices.length > 0);
    assert.match(notices[0], /thing\.bin/);
    assert.equal(draft, "look at this");
    assert.equal(previews, 0);
  });
});
