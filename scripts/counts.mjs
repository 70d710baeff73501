// Reads how many tests passed and failed from what the test runners print: cargo, Vitest and node:test.
import { stripVTControlCharacters } from "node:util";

/**
 * The counts of one suite's output, all its runners added up.
 *
 * A suite that could not run (it did not compile, it crashed, it hung) or ran no test at all counts as one
 * failure: silence is no success.
 */
export function count(output, exitCode) {
  const text = stripVTControlCharacters(output).replaceAll("\r", "");
  const counts = [...cargo(text), ...vitest(text), ...nodeTest(text)];
  const sum = (name) => counts.reduce((total, one) => total + one[name], 0);
  const passed = sum("passed");
  const failed = sum("failed");
  const silent = exitCode === 0 ? passed === 0 : failed === 0;
  return { passed, failed: failed === 0 && silent ? 1 : failed };
}

function cargo(text) {
  return [...text.matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed;/gm)].map(([, passed, failed]) => ({
    passed: Number(passed),
    failed: Number(failed),
  }));
}

function vitest(text) {
  return [...text.matchAll(/^ +Tests +(.*\d.*)$/gm)].map(([, line]) => ({
    passed: Number(line.match(/(\d+) passed/)?.[1] ?? 0),
    failed: Number(line.match(/(\d+) failed/)?.[1] ?? 0),
  }));
}

/** Its three lines come separately; a cancelled test is one that did not get to its end. */
function nodeTest(text) {
  return [...text.matchAll(/^[ℹ#] (pass|fail|cancelled) (\d+)$/gm)].map(([, outcome, number]) => ({
    passed: outcome === "pass" ? Number(number) : 0,
    failed: outcome === "pass" ? 0 : Number(number),
  }));
}
