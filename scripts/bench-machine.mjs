// On what a bench ran: without that its figures say nothing.
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { run } from "./process.mjs";

/** The machine, the day and the tools. */
export async function machine() {
  const cores = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: model(cores[0]?.model),
    cores: cores.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    rust: (await run("rustc", ["--version"], { output: "kept" })).output.trim(),
    node: process.version,
    loadAtStart: load(),
  };
}

/** How many processes wanted to run in the last minute, this one among them. */
export function load() {
  return Math.round(loadavg()[0] * 10) / 10;
}

/** A command that keeps to one core, where the system can do that: moving between cores costs and varies. */
export async function pinned(command) {
  if (process.platform !== "linux") return command;
  const core = String(cpus().length - 1);
  const { code } = await run("taskset", ["-c", core, "true"], { output: "kept" });
  return code === 0 ? ["taskset", "-c", core, ...command] : command;
}

/** A virtual machine names only the family: the number of the model tells more. */
function model(name = "unknown") {
  try {
    const number = readFileSync("/proc/cpuinfo", "utf8").match(/^model\t+: (\d+)$/m)?.[1];
    return number ? `${name.trim()}, model ${number}` : name.trim();
  } catch {
    return name.trim();
  }
}
