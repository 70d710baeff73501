// `npm run bench`: what the agent costs beside the model, next to a floor and to other agent libraries.
//
// --quick: fewer samples · --only NAME: one workload, may be given several times · --no-peers: ours and the floor
//
// Every cell is a process of its own, on one core. All cells run by turns, several times over: what the machine
// does meanwhile hits all of them. The smallest time counts, the median says how steady it was; counts of
// allocations repeat exactly. The report is target/bench/report.json.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WORKLOADS, digits, judge } from "./bench-goals.mjs";
import { load, machine, pinned } from "./bench-machine.mjs";
import { corePeers, javaScriptPeers, rustPeers, target } from "./bench-programs.mjs";
import { prepareMachine } from "./machine.mjs";
import { Problem, duration, main, run } from "./process.mjs";

const CELL_LIMIT_MS = 180_000;
/** One turn, and nothing before it. */
const ONE_TURN = "1";

await main(async () => {
  const { quick, only, "no-peers": alone } = options();
  await prepareMachine({ packages: false });
  const about = await machine();
  const programs = [...(await corePeers()), ...(alone ? [] : [...(await rustPeers()), ...(await javaScriptPeers())])];
  for (const program of programs) program.command = await pinned(program.command);

  const workloads = WORKLOADS.filter(({ name }) => only.length === 0 || only.includes(name));
  const cells = await measureAll(workloads, programs, { passes: quick ? 2 : 3, quick });
  const report = { ...about, loadAtEnd: load(), quick, workloads: cells, goals: {} };
  for (const workload of workloads) report.goals[workload.name] = judge(workload, cells[workload.name], cells);

  print(workloads, programs, report);
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  console.log(`\nThe report: ${join(target, "report.json")}`);
});

function options() {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      "no-peers": { type: "boolean", default: false },
    },
  });
  const unknown = values.only.filter((name) => !WORKLOADS.some((workload) => workload.name === name));
  if (unknown.length > 0) {
    throw new Problem(`There is no workload ${unknown.join(", ")}. The workloads are: ${WORKLOADS.map(({ name }) => name).join(", ")}.`);
  }
  return values;
}

/** Every cell once per pass; answers by workload and program the smallest time and the median of the medians. */
async function measureAll(workloads, programs, { passes, quick }) {
  const started = performance.now();
  const cells = Object.fromEntries(workloads.map(({ name }) => [name, {}]));
  for (let pass = 1; pass <= passes; pass += 1) {
    for (const { name } of workloads) {
      for (const program of programs) {
        const cell = await measure(program, name, quick ? ["quick"] : []);
        if (cell) (cells[name][program.name] ??= []).push(cell);
      }
      console.log(`  pass ${pass} of ${passes} · ${name} (${duration(performance.now() - started)})`);
    }
  }
  for (const { name, peakKb } of workloads) {
    for (const program of programs) {
      const passed = cells[name][program.name];
      if (!passed) continue;
      cells[name][program.name] = joined(passed);
      // The memory of one turn is that of a process that ran one: leftovers of earlier ones are not its own.
      if (peakKb) Object.assign(cells[name][program.name], memoryOf(await measure(program, name, [ONE_TURN])));
    }
  }
  return cells;
}

async function measure({ name, command: [program, ...args] }, workload, more) {
  const { code, stdout, output, trouble } = await run(program, [...args, workload, ...more], { output: "kept", limitMs: CELL_LIMIT_MS });
  if (code !== 0) throw new Problem(`${name} failed in ${workload}: ${trouble ?? `exit code ${code}`}\n${output}`);
  return JSON.parse(stdout);
}

function joined(passed) {
  const { peer, unit, iterations, allocs, alloc_bytes } = passed[0];
  return {
    peer,
    unit,
    iterations: iterations * passed.length,
    min_us: Math.min(...passed.map(({ min_us }) => min_us)),
    median_us: passed.map(({ median_us }) => median_us).sort((a, b) => a - b)[Math.floor(passed.length / 2)],
    allocs,
    alloc_bytes,
  };
}

function memoryOf({ peak_kb, file_kb, heap_peak_bytes }) {
  return { peak_kb, file_kb, heap_peak_bytes };
}

function print(workloads, programs, report) {
  const names = programs.map(({ name }) => name);
  console.log(`\n${report.cpu}, ${report.cores} cores, ${report.rust}; load ${report.loadAtStart} at the start, ${report.loadAtEnd} at the end`);
  table("µs per unit, smallest / median", ["workload", ...names, "× floor"], workloads, ({ name, unit }) => {
    const cells = report.workloads[name];
    const times = names.map((peer) => cells[peer] && `${digits(cells[peer].min_us)} / ${digits(cells[peer].median_us)}`);
    return [`${name} (${unit})`, ...times, digits(cells.ours.min_us / cells.floor.min_us)];
  });
  table("allocations, bytes per unit", ["workload", ...names], workloads, ({ name, unit }) => {
    const cells = report.workloads[name];
    const counts = names.map((peer) => cells[peer]?.allocs != null && `${digits(cells[peer].allocs)}, ${digits(cells[peer].alloc_bytes)}`);
    return [`${name} (${unit})`, ...counts];
  });
  const ofMemory = workloads.filter(({ peakKb }) => peakKb);
  table("memory of a process that ran one turn, MB: resident at most, of it program and libraries, heap of the turn", ["workload", ...names], ofMemory, ({ name }) => {
    const mb = (value) => (value === undefined ? "–" : digits(value / 2 ** 20));
    const memory = ({ peak_kb, file_kb, heap_peak_bytes }) => [peak_kb * 1024, file_kb && file_kb * 1024, heap_peak_bytes].map(mb).join(", ");
    return [name, ...names.map((peer) => report.workloads[name][peer] && memory(report.workloads[name][peer]))];
  });
  const verdicts = workloads.flatMap(({ name }) => report.goals[name].map((verdict) => ({ name, ...verdict })));
  table("goals (scaled: met in the goal's distance from the floor)", ["workload", "goal", "measured", "met"], verdicts, ({ name, goal, measured, met }) => [name, goal, measured, met]);
}

function table(title, head, items, row) {
  const rows = [head, ...items.map(row)].map((cells) => cells.map((cell) => cell || "–"));
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => cells[column].length)));
  console.log(`\n${title}`);
  for (const cells of rows) console.log(`  ${cells.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd()}`);
}
