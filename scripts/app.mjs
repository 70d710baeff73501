// Builds the chat app: first its frontend, then the program that carries it inside.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fingerprint } from "./fingerprint.mjs";
import { Problem, root, run, step } from "./process.mjs";
import { chat, prepareChatPackages, prepareRootPackages } from "./packages.mjs";

/**
 * The features every cargo command of the chat app uses, so that nothing is compiled for two sets.
 * Without `custom-protocol` a Tauri program loads its pages from a development server.
 */
export const CHAT_FEATURES = ["--features", "custom-protocol"];

/** The companion crates, each usable without Tauri. */
export const COMPANIONS = ["youyou-agent-providers", "youyou-agent-sqlite", "youyou-agent-postgres"].flatMap((name) => ["-p", name]);

/** Where the frontend is built to. */
const dist = join(chat, "dist");

/** What `dist` was made from, and what was made: as long as both are so, there is nothing to build. */
const RECORD = join(root, "target", "frontend.json");

/**
 * Builds the web page of the chat app into `examples/chat/dist`.
 *
 * Not when nothing changed: a `dist` written anew makes cargo compile the program that carries it anew.
 */
export async function buildFrontend() {
  await prepareRootPackages();
  await prepareChatPackages();
  // Before the build: what is changed meanwhile may not be in it.
  const sources = frontendSources();
  if (readRecord() === record(sources)) {
    console.log("\n✓ The frontend is built already");
    return;
  }
  await step("Building the frontend", "npm", ["run", "build"], { cwd: chat });
  mkdirSync(join(root, "target"), { recursive: true });
  writeFileSync(RECORD, record(sources));
}

/** Everything the page could be made from: its folder but for the backend, the client, what is installed. */
function frontendSources() {
  const installed = [root, chat].map((folder) => join(folder, "node_modules", ".package-lock.json"));
  const settings = ["package.json", "package-lock.json", "tsconfig.json"].map((name) => join(root, name));
  const without = ["node_modules", "dist", "src-tauri"];
  return fingerprint([chat, join(root, "guest-js"), ...settings, ...installed], { without });
}

function record(sources) {
  return JSON.stringify({ node: process.version, mode: process.env.NODE_ENV, sources, built: fingerprint([dist]) });
}

function readRecord() {
  try {
    return readFileSync(RECORD, "utf8");
  } catch {
    return null;
  }
}

/** Builds the program, the frontend inside, and answers the path of the executable. */
export async function buildApp() {
  await buildFrontend();
  await step("Building the chat app (the first time takes some minutes)", "cargo", ["build", "-p", "youyou-chat", ...CHAT_FEATURES]);
  return join(await targetFolder(), "debug", process.platform === "win32" ? "youyou-chat.exe" : "youyou-chat");
}

async function targetFolder() {
  const { code, output, stdout } = await run("cargo", ["metadata", "--format-version", "1", "--no-deps"], { output: "kept" });
  if (code !== 0) throw new Problem(`cargo metadata failed:\n${output}`);
  return JSON.parse(stdout).target_directory;
}
