// What goes along with a message, on every way into the composer, and at the largest size.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bigPng } from "./png.mjs";
import { onStage } from "./stage.mjs";

/** What a person would take for a hang, with room for a machine that has much else to do; measured were 0.9 s. */
const PAUSE_MS = 3_000;

const SMALL = bigPng(3_000);

onStage("files in the real window", { shared: true }, (stage) => {
  stage.promise("a picture of 20 MB is accepted, and the window stays responsive", async () => {
    const { chat } = stage;
    const file = join(stage.dataFolder, "huge.png");
    await writeFile(file, bigPng(20_000_000));
    const pauses = {};
    await chat.watchPauses();
    await chat.attach(file);
    await chat.until("its preview", ({ previews }) => previews === 1);
    pauses.attached = await chat.longestPauses();

    await chat.type("what is this?");
    await chat.watchPauses();
    await chat.press("send-button");
    const { reply, errors, pictures } = await chat.untilAnswered("what is this?");
    pauses.sent = await chat.longestPauses();
    assert.deepEqual(errors, []);
    assert.ok(reply.length > 0);
    assert.equal(pictures, 1, "the message shows the picture");

    await chat.reload();
    await chat.watchPauses();
    await chat.until("the picture from the history", (screen) => screen.pictures === 1);
    pauses.read = await chat.longestPauses();
    const told = JSON.stringify(pauses);
    const longest = Math.max(...Object.values(pauses).flatMap(({ frame, timer }) => [frame, timer]));
    assert.ok(longest < PAUSE_MS, `the page stood still for ${Math.round(longest)} ms: ${told}`);
  });

  stage.promise("a picture that is dropped and one that is pasted are sent like chosen ones", async () => {
    const { chat } = stage;
    await chat.drop("dropped.png", "image/png", SMALL);
    await chat.until("the dropped one", ({ previews }) => previews === 1);
    await chat.paste("pasted.png", "image/png", SMALL);
    const { notices, draft } = await chat.until("the pasted one", ({ previews }) => previews === 2);
    assert.deepEqual({ notices, draft }, { notices: [], draft: "" });
    const { said, pictures, errors } = await chat.ask("two pictures");
    assert.deepEqual(errors, []);
    assert.equal(said.length, 1);
    assert.equal(pictures, 2, "the message shows both");
  });

  stage.promise("a text that is dropped is a file of the message, and what is neither is refused by name", async () => {
    const { chat } = stage;
    await chat.drop("notes.md", "text/markdown", Buffer.from("# Notes"));
    await chat.until("the text", ({ previews }) => previews === 1);
    await chat.drop("thing.bin", "application/octet-stream", Buffer.from([0, 1, 2, 255]));
    const { notices, previews } = await chat.until("a notice", (screen) => screen.notices.length > 0);
    assert.match(notices[0], /thing\.bin/);
    assert.equal(previews, 1, "what came before stays");
    const { said } = await chat.ask("read this");
    assert.match(said[0], /notes\.md/);
  });
});
