// The npm packages of the repository and of the chat app: installed when they do not match the lock file.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root, step } from "./process.mjs";

/** The folder of the chat app's frontend. */
export const chat = join(root, "examples", "chat");

/** Installs the packages of the repository's root where needed. */
export const prepareRootPackages = () => install(root, "Installing the npm packages");

/** Installs the packages of the chat app where needed. */
export const prepareChatPackages = () => install(chat, "Installing the npm packages of the chat app");

async function install(folder, title) {
  if (!isCurrent(folder)) await step(title, "npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder });
}

/** Whether what is installed is what the lock file says; npm keeps its own record inside node_modules. */
export function isCurrent(folder) {
  const record = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(record)) return false;
  const installed = JSON.parse(readFileSync(record, "utf8")).packages;
  const wanted = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages;
  return Object.entries(wanted)
    .filter(([path, entry]) => path.startsWith("node_modules/") && !entry.optional && !entry.devOptional)
    .every(([path, entry]) => installed[path] && installed[path].version === entry.version);
}
