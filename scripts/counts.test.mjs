import assert from "node:assert/strict";
import { test } from "node:test";
import { count } from "./counts.mjs";

test("the binaries of one cargo run are added up", () => {
  const output = `
running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
`;
  assert.deepEqual(count(output, 101), { passed: 5, failed: 1 });
});

test("Vitest's line is read with colours, with and without failures", () => {
  const green = "\u001b[2m Test Files \u001b[22m \u001b[1m2 passed\u001b[22m (2)\n\u001b[2m      Tests \u001b[22m \u001b[32m12 passed\u001b[39m (12)\n";
  assert.deepEqual(count(green, 0), { passed: 12, failed: 0 });
  assert.deepEqual(count("      Tests  3 failed | 12 passed | 1 skipped (16)\n", 1), { passed: 12, failed: 3 });
});

test("node:test is read in both its forms, a cancelled test as a failed one", () => {
  assert.deepEqual(count("ℹ pass 5\nℹ fail 1\nℹ cancelled 1\n", 1), { passed: 5, failed: 2 });
  assert.deepEqual(count("# pass 5\n# fail 0\n# cancelled 0\n", 0), { passed: 5, failed: 0 });
});

test("a suite that could not run is a failure", () => {
  assert.deepEqual(count("error: could not compile", 101), { passed: 0, failed: 1 });
});

test("a suite that crashed after some passed tests is a failure", () => {
  assert.deepEqual(count("test result: ok. 2 passed; 0 failed; 0 ignored\nSIGABRT", 101), { passed: 2, failed: 1 });
});

test("a suite without a single test is a failure", () => {
  assert.deepEqual(count("test result: ok. 0 passed; 0 failed; 0 ignored", 0), { passed: 0, failed: 1 });
});
