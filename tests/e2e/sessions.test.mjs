// What becomes of sessions from the sidebar.
import assert from "node:assert/strict";
import { onStage } from "./stage.mjs";
import { until } from "./webdriver.mjs";

onStage("the sessions in the sidebar", {}, (stage) => {
  stage.promise("a deletion that is refused says why and keeps the session; the next one deletes it", async () => {
    const { chat } = stage;
    const before = await chat.ask("list files");
    await chat.reopenBeforeDeletion();
    await chat.deleteNewestSession();
    await chat.until("the session to be out of sight", ({ sessions, entries }) => sessions.length === 0 && entries.length === 0);
    const refused = await chat.until("the refusal", ({ toasts }) => toasts.some((one) => one.includes("SESSION_BUSY")));
    await stage.photograph("deletion-refused");
    assert.match(refused.toasts.find((one) => one.includes("SESSION_BUSY")), /open/, "it says what stands in the way");
    await chat.until("the session to be back", ({ sessions }) => sessions.includes("list files"));

    await chat.openSession("list files");
    const kept = await chat.until("its messages", ({ answers }) => answers.length === before.answers.length);
    assert.deepEqual(kept.answers, before.answers);
    const next = await chat.ask("hello");
    assert.deepEqual(next.errors, [], "it goes on");

    await chat.deleteNewestSession();
    await chat.until("the session to be out of sight", ({ sessions }) => sessions.length === 0);
    await until("the end of the time to undo it", () => chat.hasNoSession());
    await chat.reload();
    const after = await chat.look();
    assert.deepEqual({ sessions: after.sessions, entries: after.entries }, { sessions: [], entries: [] });
  });
});
