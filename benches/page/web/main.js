// The measurements. The driver asks for `bench.cells`, starts an app for each, calls `bench.start` there and looks at
// `bench` until it is over: nobody's frames wait for the collection of what another way left behind.
import { frames, mainThread, memory, now, pause, quantile, round } from "./gauges.js";
import { aiSdk, cancels, ours, raw } from "./ways.js";

const DELTA_LENGTH = 20;

const BURST = { deltas: 100_000 };
const PACED = { deltas: 200, tickUs: 10_000 };
const STEADY = { deltas: 30_000, tickUs: 1_000, perTick: 10 };
const BIG = { deltas: 200, tickUs: 10_000, bigBytes: 1_000_000 };
const CANCEL = { deltas: 100 };

const WAYS = { raw: raw(1), "raw joined by 100": raw(100), ours, "ai sdk": aiSdk };

/** What is measured in which way, and how often. One message per delta buries the page: few of those are enough. */
const MEASUREMENTS = [
  { name: "burst", script: BURST, ways: { raw: 2, "raw joined by 100": 5, ours: 5, "ai sdk": 2 } },
  { name: "burst, main thread", script: BURST, gauge: mainThread, ways: { raw: 1, "raw joined by 100": 3, ours: 3, "ai sdk": 1 } },
  { name: "paced", script: PACED, ways: { raw: 5, ours: 5, "ai sdk": 3 } },
  { name: "steady", script: STEADY, ways: { raw: 3, ours: 3, "ai sdk": 2 } },
  { name: "steady, drawn", script: STEADY, draws: true, ways: { raw: 3, ours: 3, "ai sdk": 2 } },
  { name: "big", script: BIG, ways: { raw: 3, ours: 3 } },
];

/** How often each way is cancelled. */
const CANCELS = 10;

const bench = { results: [], over: false, failed: undefined };
window.bench = bench;

/** What is measured, each in an app of its own: `measurement` and `way`; with `only`, the measurements of this name. */
bench.cells = (only) => {
  const cells = MEASUREMENTS.flatMap(({ name, ways }) => Object.keys(ways).map((way) => ({ measurement: name, way })));
  cells.push(...Object.keys(cancels).map((way) => ({ measurement: "cancel", way })));
  return cells.filter(({ measurement }) => only === null || measurement === only);
};

bench.start = async ({ measurement, way }, quick) => {
  try {
    await measure({ script: { deltas: 1_000 } }, way);
    for await (const figures of measurement === "cancel" ? cancelled(way) : measured(measurement, way, quick)) {
      bench.results.push({ measurement, way, ...figures });
    }
  } catch (error) {
    bench.failed = `${error?.stack ?? ""} ${error?.message ?? JSON.stringify(error)}`;
  }
  bench.over = true;
};

async function* measured(name, way, quick) {
  const measurement = MEASUREMENTS.find((one) => one.name === name);
  const times = quick ? 1 : measurement.ways[way];
  for (let time = 0; time < times; time += 1) yield await measure(measurement, way);
}

async function* cancelled(way) {
  for (let time = 0; time < CANCELS; time += 1) yield { cancel_ms: round(await cancels[way](CANCEL)) };
}

async function measure({ script, gauge = frames, draws = false }, way) {
  const page = draws ? new Drawing() : undefined;
  const arrived = [];
  let big;
  await pause(300);
  const before = await memory();
  const stop = gauge();
  const began = performance.now();
  await WAYS[way](script, (text, bytes) => {
    if (bytes === undefined) arrived.push([text, now()]);
    else big = { at: arrived.length, bytes };
    page?.add(text ?? "");
  });
  const wall = performance.now() - began;
  const gauged = stop();
  const after = await memory();
  page?.clear();

  const length = arrived.reduce((sum, [text]) => sum + text.length, 0);
  if (length !== script.deltas * DELTA_LENGTH) throw new Error(`${way} brought ${length} characters`);
  if (script.bigBytes && big?.bytes !== script.bigBytes) throw new Error(`${way} brought ${big?.bytes} big bytes`);
  const ages = arrived.map(agesOf);
  return {
    messages: arrived.length,
    wall_ms: round(wall),
    messages_per_s: Math.round(arrived.length / (wall / 1000)),
    first_ms: round(ages[0][0]),
    age_p50_ms: quantile(ages.flat(), 0.5),
    age_p99_ms: quantile(ages.flat(), 0.99),
    ...(big && { after_big_max_ms: quantile(ages.slice(big.at).flat(), 1) }),
    ...gauged,
    web_growth_mb: round((after.web - before.web) / 1024),
    app_growth_mb: round((after.app - before.app) / 1024),
  };
}

/** How old each delta of a message was when it arrived. */
function agesOf([text, at]) {
  const ages = [];
  for (let from = 0; from < text.length; from += DELTA_LENGTH) ages.push(at - Number(text.slice(from, from + 16)) / 1000);
  return ages;
}

/** The text in the page, in paragraphs, as a chat shows it. */
class Drawing {
  #place = document.getElementById("answer");
  #paragraph;
  #length = Infinity;

  add(text) {
    if (this.#length > 2_000) {
      this.#paragraph = this.#place.appendChild(document.createElement("p"));
      this.#length = 0;
      this.#paragraph.scrollIntoView({ block: "end" });
    }
    this.#paragraph.append(text);
    this.#length += text.length;
  }

  clear() {
    this.#place.replaceChildren();
  }
}
