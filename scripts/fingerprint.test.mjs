import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fingerprint } from "./fingerprint.mjs";

test("whatever happens to a file changes the fingerprint, and nothing else does", () => {
  const folder = mkdtempSync(join(tmpdir(), "fingerprint-"));
  const write = (name, text) => writeFileSync(join(folder, name), text);
  const now = () => fingerprint([folder, join(folder, "absent")], { without: ["left-out"] });
  try {
    for (const name of ["src", "left-out"]) mkdirSync(join(folder, name));
    write("src/a.ts", "one");
    const first = now();
    assert.equal(now(), first);

    write("left-out/b.ts", "built");
    write("src/a.ts", "one");
    assert.equal(now(), first, "neither what is passed over nor the same text written again");

    const seen = new Set([first]);
    const steps = [
      () => write("src/a.ts", "two"),
      () => write("src/b.ts", ""),
      () => rmSync(join(folder, "src/a.ts")),
      () => write("absent", ""),
    ];
    for (const step of steps) {
      step();
      seen.add(now());
    }
    assert.equal(seen.size, 1 + steps.length, "changed, added, removed, come into being");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
