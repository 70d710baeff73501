// The workloads of `npm run bench`, what they shall cost, and whether they do.
// Nothing here runs anything.

const KIB = 1024;

/**
 * `us`: goal in microseconds per unit. It was set beside a floor of `floorThen` microseconds on the machine of
 * that day; on another machine the same goal is `us` scaled by what the floor takes there.
 * `ratio`: most times the floor. `allocs`, `bytes`: per unit. `bytesOf`: most bytes, as a multiple of another
 * workload's. `sameAs`: allocations and bytes within 1 % of another workload's. `peakKb`: resident memory of a
 * process that ran one turn.
 */
export const WORKLOADS = [
  { name: "stream10k", unit: "delta", us: 0.3, floorThen: 0.18, ratio: 1.7, allocs: 2, bytes: 256, peakKb: 4 * KIB },
  { name: "turn10", unit: "turn", us: 10, floorThen: 2.7 },
  { name: "tool20", unit: "round", us: 5, floorThen: 1.9, ratio: 2.5, allocs: 80, bytes: 8 * KIB },
  { name: "tool200", unit: "round", us: 5, floorThen: 3.2, bytesOf: ["tool20", 1.5] },
  { name: "hooks8", unit: "round", us: 8, floorThen: 3.2 },
  { name: "par16", unit: "call", us: 4, floorThen: 1.6 },
  { name: "hist1k", unit: "turn", us: 10, floorThen: 1.2 },
  { name: "hist1k_tool20", unit: "round", us: 5, floorThen: 2.0 },
  { name: "hist10k_tool20", unit: "round", us: 6, floorThen: 2.6, sameAs: "hist1k_tool20" },
  { name: "image_tool20", unit: "round", us: 6, floorThen: 2.9, bytes: 64 * KIB },
  { name: "cancel", unit: "cancel", us: 50, floorThen: 0.5 },
  { name: "build20", unit: "build" },
];

/** A count per unit is met when only the turn's own few allocations, spread over its units, lie above it. */
const SPREAD = 0.05;

/**
 * Each goal of a workload with what was measured: `{ goal, measured, met }`. `met` is "yes", "no", or "scaled":
 * missed in microseconds on this machine, met beside its floor.
 */
export function judge(workload, cells, all) {
  const { ours, floor } = cells;
  const { us, floorThen, ratio, allocs, bytes, bytesOf, sameAs, peakKb } = workload;
  const verdicts = [];
  const say = (goal, measured, met) => verdicts.push({ goal, measured, met: met === true ? "yes" : met || "no" });
  if (us !== undefined) {
    const scale = floorThen && floor ? floor.min_us / floorThen : 1;
    say(`≤ ${us} µs`, `${digits(ours.min_us)} µs`, ours.min_us <= us || (ours.min_us <= us * scale && "scaled"));
  }
  if (ratio !== undefined && floor) {
    const measured = ours.min_us / floor.min_us;
    say(`≤ ${ratio} × floor`, `${digits(measured)} ×`, measured <= ratio);
  }
  if (allocs !== undefined) say(`≤ ${allocs} allocs`, digits(ours.allocs), ours.allocs <= allocs + SPREAD);
  if (bytes !== undefined) say(`≤ ${bytes} B`, `${Math.round(ours.alloc_bytes)} B`, ours.alloc_bytes <= bytes);
  if (bytesOf !== undefined && all[bytesOf[0]]) {
    const measured = ours.alloc_bytes / all[bytesOf[0]].ours.alloc_bytes;
    say(`bytes ≤ ${bytesOf[1]} × ${bytesOf[0]}`, `${digits(measured)} ×`, measured <= bytesOf[1]);
  }
  if (sameAs !== undefined && all[sameAs]) {
    const other = all[sameAs].ours;
    const same = near(ours.allocs, other.allocs) && near(ours.alloc_bytes, other.alloc_bytes);
    say(`counts as ${sameAs}`, `${digits(ours.allocs)} and ${digits(other.allocs)} allocs`, same);
  }
  if (peakKb !== undefined && ours.peak_kb) {
    say(`≤ ${peakKb / KIB} MB resident`, `${digits(ours.peak_kb / KIB)} MB`, ours.peak_kb <= peakKb);
  }
  return verdicts;
}

/** A figure with the digits that mean something. */
export function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(value >= 100 ? 3 : 2)));
}

function near(a, b) {
  return Math.abs(a - b) <= 0.01 * b;
}
