// `node --expose-gc main.mjs ai|pi WORKLOAD [ITERATIONS|quick]` prints one cell as a line of JSON, or
// `null` where the peer has nothing to measure.
import assert from "node:assert/strict";
import { expected, workloadNamed } from "./workloads.mjs";

const [peerName, workloadName, iterationsWanted] = process.argv.slice(2);
const { peer, prepare, turn, cancel } = await import(`./${peerName}.mjs`);
const workload = workloadNamed(workloadName);
console.log(JSON.stringify(workload ? await measure() : null));

async function measure() {
  const iterations = chosen(workload.iterations);
  const warmUp = iterations === 1 ? 0 : Math.max(5, Math.floor(iterations / 10));
  const times = [];
  for (let iteration = 0; iteration < warmUp + iterations; iteration += 1) {
    const prepared = prepare(workload);
    if (workload.warm) await turn(workload, prepared);
    const { micros, seen } = await (workload.cancel ? cancel : turn)(workload, prepared);
    check(seen);
    if (iteration >= warmUp) times.push(micros);
  }
  times.sort((a, b) => a - b);
  const perUnit = (micros) => Math.round((micros / workload.units) * 1e4) / 1e4;
  return {
    peer,
    workload: workload.name,
    unit: workload.unit,
    iterations,
    min_us: perUnit(times[0]),
    median_us: perUnit(times[Math.floor(times.length / 2)]),
    allocs: null,
    alloc_bytes: null,
    peak_kb: process.resourceUsage().maxRSS,
  };
}

function chosen(usual) {
  if (iterationsWanted === undefined) return usual;
  return iterationsWanted === "quick" ? Math.max(10, Math.floor(usual / 4)) : Number(iterationsWanted);
}

function check(seen) {
  const wanted = expected(workload);
  if (workload.cancel) assert.equal(seen.deltas, wanted.deltas, `${peer} lost deltas before the cancel`);
  else assert.deepEqual(seen, wanted, `${peer} does not do what ${workload.name} asks`);
}
