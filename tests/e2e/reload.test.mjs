// Reloads in mid-stream: the turn belongs to the backend, and the page sees every word once.
import assert from "node:assert/strict";
import { onStage, words } from "./stage.mjs";

const RELOADS = 20;

/** Twenty starts of the page take minutes on a machine that has much else to do. */
const LIMIT_MS = 600_000;

/** The end of a text that still streams is not yet what it will be: half a table is no table. */
const SETTLING = 400;

onStage("a page that is reloaded in mid-stream", {}, (stage) => {
  // F4
  stage.promise(`goes on ${RELOADS} times without a gap and without a double`, async () => {
    const { chat } = stage;
    let reloads = 0;
    let turns = 0;
    let whole;
    while (reloads < RELOADS) {
      turns += 1;
      await chat.send("long answer");
      let seen = await chat.untilStreaming(100);
      while (reloads < RELOADS && seen.state === "running") {
        await chat.reload();
        reloads += 1;
        const before = words(seen.answers.at(-1));
        seen = await chat.until(
          "an answer that went on",
          ({ answers, state }) =>
            answers.length === turns && (state === "idle" || words(answers.at(-1)).length > before.length),
        );
        const settled = before.slice(0, Math.max(0, before.length - SETTLING));
        assert.equal(words(seen.answers.at(-1)).slice(0, settled.length), settled);
        if (reloads === 3) await stage.photograph("reloaded");
      }
      const live = await chat.untilIdle();
      whole ??= words(live.answers[0]);
      assert.equal(words(live.answers.at(-1)), whole, `the answer of turn ${turns}`);
      assert.deepEqual(live.said, Array(turns).fill("long answer"));
    }

    // Now from the stored history alone: what the storage holds is what was streamed.
    await chat.reload();
    const stored = await chat.until("the answers from the history", ({ answers }) => answers.length === turns);
    assert.deepEqual(stored.answers.map(words), Array(turns).fill(whole));
  }, { limitMs: LIMIT_MS });
});
