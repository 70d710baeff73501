// The workloads of benches/harness/src/workload.rs for JavaScript, and what must come out of them.

/** A text delta of 20 bytes. */
export const DELTA = "lorem ipsum dolor si";

const BASE = { unit: "round", units: 1, rounds: 0, calls: 0, deltas: 1, history: 0, image: false, warm: false, cancel: false };
const rounds = (number) => ({ rounds: number, calls: 1, units: number });

const WORKLOADS = {
  stream10k: { unit: "delta", units: 10_000, deltas: 10_000, iterations: 35 },
  turn10: { unit: "turn", deltas: 10, iterations: 300 },
  tool20: { ...rounds(20), iterations: 100 },
  tool200: { ...rounds(200), iterations: 35 },
  par16: { unit: "call", rounds: 1, calls: 16, units: 16, iterations: 300 },
  hist1k: { unit: "turn", history: 1_000, warm: true, iterations: 200 },
  hist1k_tool20: { ...rounds(20), history: 1_000, warm: true, iterations: 60 },
  hist10k_tool20: { ...rounds(20), history: 10_000, warm: true, iterations: 35 },
  image_tool20: { ...rounds(20), history: 20, image: true, warm: true, iterations: 35 },
  cancel: { unit: "cancel", deltas: 100, cancel: true, iterations: 300 },
};

/** The workload of this name, or undefined where these peers have nothing to measure. */
export function workloadNamed(name) {
  const own = WORKLOADS[name];
  return own && { name, ...BASE, ...own };
}

/** What a run must show before its time counts. */
export function expected({ deltas, rounds, calls }) {
  return { deltas, toolResults: rounds * calls, textLength: deltas * DELTA.length, modelCalls: rounds + 1 };
}

/** The answer to model call number `number` of a session: its calls, or its deltas. Ids never come twice. */
export function answer({ rounds, calls, deltas }, number) {
  const turn = Math.floor(number / (rounds + 1));
  const step = number % (rounds + 1);
  if (step === rounds) return { calls: [], deltas };
  const first = (turn * rounds + step) * calls;
  return { calls: Array.from({ length: calls }, (_, index) => call(first + index)), deltas: 0 };
}

function call(number) {
  return { id: `call_${number}`, text: `hello${String(number % 1_000_000).padStart(6, "0")}` };
}

/** The texts before the measured turn, the user's and the model's by turns; one may be an image. */
export function history({ history, image }) {
  return Array.from({ length: history }, (_, index) => ({
    fromUser: index % 2 === 0,
    text: "x".repeat(200),
    image: image && index === 2 ? imageData() : undefined,
  }));
}

/** 5 MiB of base64 that is a PNG by its first bytes. */
function imageData() {
  const header = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
  return header + "QUJD".repeat((5 * 1024 * 1024 - header.length) / 4);
}
