// What a script must not leave behind, however it ends: processes it started, folders it made.
import { rmSync } from "node:fs";
import { constants } from "node:os";
import { descendants, killAll } from "./processes.mjs";

/** The children of this script that run. */
const children = new Set();
const folders = new Set();

/** Ends this child and all that came from it when the script ends, unless it has ended before. */
export function endWithMe(child) {
  listen();
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Removes this folder when the script ends, unless somebody else did. */
export function removeWithMe(folder) {
  listen();
  folders.add(folder);
  return folder;
}

/** Somebody else has removed the folder. */
export function removed(folder) {
  folders.delete(folder);
}

let listening = false;

function listen() {
  if (listening) return;
  listening = true;
  // Also after an uncaught error and after `process.exit`.
  process.once("exit", clean);
  // Without a listener a signal ends the script at once, and no "exit" comes.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
}

function clean() {
  for (const child of children) {
    const known = child.pid ? descendants(child.pid) : [];
    child.kill("SIGKILL");
    killAll(known);
  }
  // The killed may be writing their last bytes.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}
