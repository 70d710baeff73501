// `npm run test:crash`: a conversation in a real process with the real storage, killed at 200 random points.
// Its last line is "kills N, resumes N, losses N"; a loss fails it. --kills N: another number.
import { parseArgs } from "node:util";
import { CHAT_FEATURES, buildFrontend } from "./app.mjs";
import { prepareMachine } from "./machine.mjs";
import { Problem, main, run } from "./process.mjs";

const TEST = "kills::a_conversation_killed_at_any_point_loses_nothing_that_was_stored_and_goes_on";

await main(async () => {
  const kills = wantedKills();
  await prepareMachine();
  await buildFrontend();
  const args = ["test", "-p", "youyou-chat", ...CHAT_FEATURES, "--test", "crash", "--", TEST, "--exact", "--nocapture"];
  const { code, output } = await run("cargo", args, { env: { YOUYOU_CHAT_KILLS: kills }, output: "both" });
  const [sum] = output.match(/^kills \d+, resumes \d+, losses \d+$/m) ?? [];
  if (!sum) throw new Problem("The crash test did not come to its end: see above.");
  console.log(`\n${sum}`);
  return code;
});

function wantedKills() {
  const { values } = parseArgs({ options: { kills: { type: "string", default: "200" } } });
  if (!/^[1-9]\d*$/.test(values.kills)) throw new Problem(`--kills takes a number above 0, not "${values.kills}".`);
  return values.kills;
}
