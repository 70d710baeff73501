// `npm run bench:page`: how events reach a page, in the real webview, in release mode: through a plain channel,
// through the plugin and its client, and from the AI SDK inside the page. `--quick`: once instead of several times.
// `--only burst`: only the measurements of this name.
// Each way has an app of its own per measurement. The report is target/bench/page.json. Linux only: nothing else has WebKitWebDriver.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Display, RunningApp, createDataFolder, removeDataFolder } from "../tests/e2e/launch.mjs";
import { until } from "../tests/e2e/webdriver.mjs";
import { load, machine } from "./bench-machine.mjs";
import { buildPageApps, target } from "./bench-programs.mjs";
import { prepareMachine } from "./machine.mjs";
import { Problem, main } from "./process.mjs";

/** Of one cell. */
const LIMIT_MS = 3 * 60_000;

/** What a goal is held against: the run in the middle, or the worst one. */
const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const worst = (values) => Math.max(...values);

/** Goals of ours; `besideRaw` is added to what the plain channel took in the same run. */
const GOALS = [
  { measurement: "burst", figure: "wall_ms", of: middle, most: 250 },
  { measurement: "burst", figure: "frame_max_ms", of: middle, most: 33 },
  { measurement: "burst, main thread", figure: "main_gap_max_ms", of: middle, most: 33 },
  { measurement: "burst", figure: "web_growth_mb", of: middle, most: 10 },
  { measurement: "paced", figure: "first_ms", of: middle, besideRaw: 1 },
  { measurement: "paced", figure: "age_p99_ms", of: middle, most: 25 },
  { measurement: "steady", figure: "frame_max_ms", of: middle, most: 33 },
  { measurement: "steady", figure: "messages_per_s", of: worst, most: 65 },
  { measurement: "big", figure: "after_big_max_ms", of: worst, most: 50 },
  { measurement: "cancel", figure: "cancel_ms", of: worst, most: 20 },
];

await main(async () => {
  if (process.platform !== "linux") throw new Problem("npm run bench:page runs on Linux only.");
  const { values } = parseArgs({ options: { quick: { type: "boolean", default: false }, only: { type: "string" } } });
  await prepareMachine({ drive: true });
  const about = await machine();
  const [program] = await buildPageApps("bench-page");
  const results = await drive(program, values);
  if (results.length === 0) throw new Problem(`No measurement is called "${values.only}".`);
  const names = new Set(results.map(({ measurement }) => measurement));
  const goals = GOALS.filter(({ measurement }) => names.has(measurement)).map((goal) => judge(goal, results));

  print(results, goals);
  mkdirSync(target, { recursive: true });
  const report = { ...about, loadAtEnd: load(), goals, summary: summary(results), results };
  writeFileSync(join(target, "page.json"), `${JSON.stringify(report, null, 2)}\n`);
});

/** Every cell in an app of its own, so that nothing waits for the garbage of another way. */
async function drive(program, { quick, only = null }) {
  const display = await Display.start();
  try {
    const cells = await withPage(program, display, (browser) => browser.evaluate("return window.bench.cells(arguments[0])", only));
    const results = [];
    for (const cell of cells) {
      console.log(`  ${key(cell)}`);
      results.push(...(await withPage(program, display, (browser) => measured(browser, cell, quick))));
    }
    return results;
  } finally {
    await display.stop();
  }
}

async function measured(browser, cell, quick) {
  await browser.evaluate("window.bench.start(arguments[0], arguments[1])", cell, quick);
  // Seldom, because each look costs the page some of its time.
  for (const end = Date.now() + LIMIT_MS; !(await browser.evaluate("return window.bench.over")); await pause(1_000)) {
    if (Date.now() > end) throw new Problem(`${key(cell)} was not over after ${LIMIT_MS / 60_000} minutes.`);
  }
  const { results, failed } = await browser.evaluate("return window.bench");
  if (failed) throw new Problem(`The page failed: ${failed}`);
  return results;
}

async function withPage(program, display, use) {
  const dataFolder = await createDataFolder();
  let app;
  try {
    app = await RunningApp.start({ program, display, dataFolder });
    await until("the page to be there", () => app.browser.evaluate("return Boolean(window.bench?.start)"));
    return await use(app.browser);
  } finally {
    await app?.close();
    await removeDataFolder(dataFolder);
  }
}

function judge({ measurement, figure, of, most, besideRaw }, results) {
  const values = (way) => results.filter((one) => one.measurement === measurement && one.way === way).map((one) => one[figure]);
  const measured = of(values("ours"));
  const limit = most ?? Math.round((of(values("raw")) + besideRaw) * 100) / 100;
  return { measurement, figure, of: of === worst ? "worst" : "median", measured, limit, met: measured <= limit };
}

/** Per measurement and way the median of each figure. */
function summary(results) {
  const groups = new Map();
  for (const one of results) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
  return [...groups.values()].map((group) => {
    const { measurement, way, ...figures } = group[0];
    const medians = Object.keys(figures).map((figure) => [figure, middle(group.map((one) => one[figure]))]);
    return { measurement, way, runs: group.length, ...Object.fromEntries(medians) };
  });
}

function key({ measurement, way }) {
  return `${measurement} · ${way}`;
}

function print(results, goals) {
  console.log("\nMedians:");
  for (const { measurement, way, runs, ...figures } of summary(results)) {
    const told = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
    console.log(`  ${key({ measurement, way })} (${runs}): ${told.join(", ")}`);
  }
  console.log("\nGoals of ours:");
  for (const { measurement, figure, of, measured, limit, met } of goals) {
    console.log(`  ${`${measurement}: ${figure}`.padEnd(40)} ${of} ${String(measured).padStart(8)}  ≤ ${limit}  ${met ? "met" : "MISSED"}`);
  }
}
