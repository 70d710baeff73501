// Builds the chat app: first its frontend, then the program that carries it inside.
import { join } from "node:path";
import { Problem, root, run, step } from "./process.mjs";
import { chat, prepareChatPackages, prepareRootPackages } from "./packages.mjs";

/**
 * The features every cargo command of the chat app uses, so that nothing is compiled for two sets.
 * Without `custom-protocol` a Tauri program loads its pages from a development server.
 */
export const CHAT_FEATURES = ["--features", "custom-protocol"];

/** Builds the web page of the chat app into `examples/chat/dist`. */
export async function buildFrontend() {
  await prepareRootPackages();
  await prepareChatPackages();
  await step("Building the frontend", "npm", ["run", "build"], { cwd: chat });
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
