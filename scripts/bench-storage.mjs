// `npm run bench:storage`: the SQLite storage of the chat app under years of data.
// The report is target/bench/storage.json.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digits } from "./bench-goals.mjs";
import { load, machine } from "./bench-machine.mjs";
import { target } from "./bench-programs.mjs";
import { prepareMachine } from "./machine.mjs";
import { main, root, step } from "./process.mjs";

/** Goals in milliseconds, held against the median: these are single waits of a person. */
const GOALS_MS = { resume10k: 150, list10k: 5, search20k_names: 5, search20k_sentence: 5, search20k_chinese: 5 };

await main(async () => {
  await prepareMachine({ packages: false });
  const about = await machine();
  const args = ["run", "--release", "--locked", "--quiet", "--target-dir", join(target, "storage")];
  const { stdout } = await step("Building, filling and measuring the storage", "cargo", args, { cwd: join(root, "benches", "storage"), output: "kept" });
  const operations = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const judged = operations.map((operation) => ({ ...operation, goal_ms: GOALS_MS[operation.name], met: operation.median_ms <= GOALS_MS[operation.name] }));

  console.log("");
  for (const { name, min_ms, median_ms, p95_ms, goal_ms, met } of judged) {
    const times = [min_ms, median_ms, p95_ms].map(digits).join(" / ");
    console.log(`  ${name.padEnd(20)} ${times.padEnd(24)} ms (min / median / p95)  goal ≤ ${goal_ms} ms  ${met ? "met" : "MISSED"}`);
  }
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "storage.json"), `${JSON.stringify({ ...about, loadAtEnd: load(), operations: judged }, null, 2)}\n`);
});
