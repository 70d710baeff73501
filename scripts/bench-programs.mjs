// The programs that are measured: built here, and the command of one cell of each.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isCurrent, prepareRootPackages } from "./packages.mjs";
import { Problem, root, run, step } from "./process.mjs";

const benches = join(root, "benches");

/** Where reports go, and the programs. */
export const target = join(root, "target", "bench");

const NODE_OF_THE_AI_SDK = 22;

/** Ours and the floor: the bench of the agent alone, built without Tauri. */
export async function corePeers() {
  const args = ["bench", "--no-default-features", "--features", "testing", "--bench", "core", "--no-run"];
  await step("Building the bench of the agent", "cargo", args);
  const program = executable(await run("cargo", [...args, "--message-format=json"], { output: "kept" }), "core");
  return [
    { name: "floor", command: [program, "floor"] },
    { name: "ours", command: [program, "ours"] },
  ];
}

/** The Rust peers: a workspace of their own. */
export async function rustPeers() {
  const folder = join(benches, "peers");
  const args = ["build", "--release", "--locked", "--target-dir", join(target, "peers")];
  await step("Building the Rust peers (the first time takes some minutes)", "cargo", args, { cwd: folder });
  const program = executable(await run("cargo", [...args, "--message-format=json"], { cwd: folder, output: "kept" }), "bench-peers");
  return [
    { name: "yoagent", command: [program, "yoagent"] },
    { name: "rig", command: [program, "rig"] },
  ];
}

/** The JavaScript peers, on the Node.js that the AI SDK asks for. */
export async function javaScriptPeers() {
  const folder = join(benches, "peers-js");
  if (!isCurrent(folder)) {
    await step("Installing the JavaScript peers", "npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder });
  }
  const command = (peer) => [nodeFor(folder), "--expose-gc", join(folder, "main.mjs"), peer];
  return [
    { name: "pi", command: command("pi") },
    { name: "ai", command: command("ai") },
  ];
}

/** Apps of benches/page, in release mode; answers their paths. */
export async function buildPageApps(...names) {
  const folder = join(benches, "page");
  await prepareRootPackages();
  if (!isCurrent(folder)) await step("Installing the page's packages", "npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder });
  await step("Building the page", "npm", ["run", "--silent", "build"], { cwd: folder });
  const output = join(target, "page");
  // One after the other: apps of one package write what they carry inside to the same files.
  for (const name of names) {
    const args = ["build", "--release", "--locked", "--target-dir", output, "--bin", name];
    await step(`Building ${name} (the first time takes some minutes)`, "cargo", args, { cwd: folder });
  }
  return names.map((name) => join(output, "release", name));
}

function nodeFor(folder) {
  if (Number(process.versions.node.split(".")[0]) >= NODE_OF_THE_AI_SDK) return process.execPath;
  const own = join(folder, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (existsSync(own)) return own;
  throw new Problem(`The AI SDK needs Node.js ${NODE_OF_THE_AI_SDK}, this is ${process.versions.node}, and the package "node" did not install one. Install a newer Node.js, or run with --no-peers.`);
}

function executable({ stdout }, target) {
  const messages = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const found = messages.findLast((message) => message.reason === "compiler-artifact" && message.target.name === target && message.executable);
  if (!found) throw new Problem(`cargo did not say where it put the program "${target}".`);
  return found.executable;
}
