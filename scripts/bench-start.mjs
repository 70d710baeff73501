// `npm run bench:start`: what the plugin adds to the start of an empty Tauri app, and to its program.
// Two apps that differ in the plugin alone are started by turns until their page has loaded.
// The report is target/bench/start.json. Linux only: it needs a display that nobody sees.
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Display, createDataFolder, removeDataFolder } from "../tests/e2e/launch.mjs";
import { load, machine } from "./bench-machine.mjs";
import { buildPageApps, target } from "./bench-programs.mjs";
import { prepareMachine } from "./machine.mjs";
import { Problem, main, step } from "./process.mjs";

/** Starts of each app that count, after some that only warm the caches. */
const STARTS = 20;
const WARM_UP = 3;
const LIMIT_MS = 60_000;
const KIB = 1024;

await main(async () => {
  if (process.platform !== "linux") throw new Problem("npm run bench:start runs on Linux only.");
  await prepareMachine({ drive: true });
  const about = await machine();
  const apps = [];
  for (const program of await buildPageApps("start-empty", "start-agent")) {
    apps.push({ name: basename(program), program, ...(await sizes(program)), starts: [] });
  }

  const display = await Display.start();
  const dataFolder = await createDataFolder();
  try {
    for (let round = 0; round < WARM_UP + STARTS; round += 1) {
      for (const { program, starts } of apps) {
        const ms = await start(program, display, dataFolder);
        if (round >= WARM_UP) starts.push(ms);
      }
    }
  } finally {
    await display.stop();
    await removeDataFolder(dataFolder);
  }

  const told = apps.map(({ name, starts, bytes, strippedBytes }) => {
    const sorted = [...starts].sort((a, b) => a - b);
    return { name, starts: sorted.length, min_ms: sorted[0], median_ms: sorted[Math.floor(sorted.length / 2)], bytes, strippedBytes };
  });
  const [empty, agent] = told;
  const added = {};
  for (const key of ["min_ms", "median_ms", "bytes", "strippedBytes"]) added[key] = agent[key] - empty[key];
  console.log("");
  for (const one of [...told, { name: "added by the plugin", ...added }]) {
    console.log(`  ${one.name.padEnd(20)} ${described(one)}`);
  }
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "start.json"), `${JSON.stringify({ ...about, loadAtEnd: load(), apps: told, added }, null, 2)}\n`);
});

/** From the start of the program to the end of loading its page, in milliseconds. */
function start(program, display, dataFolder) {
  const env = { ...process.env, DISPLAY: display.name, GDK_BACKEND: "x11" };
  for (const kind of ["DATA_HOME", "CONFIG_HOME", "CACHE_HOME"]) env[`XDG_${kind}`] = join(dataFolder, kind);
  const started = performance.now();
  const app = spawn(program, { env, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let loaded;
    let said = "";
    const limit = setTimeout(() => app.kill("SIGKILL"), LIMIT_MS);
    app.stdout.once("data", () => (loaded = performance.now() - started));
    app.stderr.on("data", (text) => (said += text));
    app.once("error", reject);
    // Not "exit": that may be told before what the app had written is read.
    app.once("close", (code, signal) => {
      clearTimeout(limit);
      if (loaded === undefined) reject(new Problem(`${program} ended (${signal ?? code}) before its page had loaded. ${said.trim()}`));
      else resolve(loaded);
    });
  });
}

/** The program's size as cargo leaves it, and as it is shipped: without symbols. */
async function sizes(program) {
  const stripped = `${program}.stripped`;
  copyFileSync(program, stripped);
  await step(`Measuring ${basename(program)}`, "strip", [stripped]);
  return { bytes: statSync(program).size, strippedBytes: statSync(stripped).size };
}

function described({ min_ms, median_ms, bytes, strippedBytes }) {
  const kib = (value) => `${Math.round(value / KIB).toLocaleString("en-US")} KiB`;
  return `page loaded after ${min_ms.toFixed(0)} / ${median_ms.toFixed(0)} ms (min / median), program ${kib(bytes)}, stripped ${kib(strippedBytes)}`;
}
