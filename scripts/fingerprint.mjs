// Tells whether files changed since something was made from them.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * A text that changes with the name or the content of any file at or below these paths; what is not
 * there counts as well. `without` names the folders that are passed over, wherever they are.
 */
export function fingerprint(paths, { without = [] } = {}) {
  const hash = createHash("sha256");
  for (const path of paths) {
    for (const file of filesAt(path, without)) {
      const content = statSync(file, { throwIfNoEntry: false }) ? readFileSync(file) : null;
      hash.update(`${file}\0${content ? content.length : "missing"}\0`).update(content ?? "");
    }
  }
  return hash.digest("hex");
}

function filesAt(path, without) {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .filter((name) => !without.includes(name))
    .flatMap((name) => filesAt(join(path, name), without));
}
