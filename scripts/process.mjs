// Starts other programs: their output is shown, or kept, or both.
// Nothing here knows what is being built or tested.
import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root folder: every program is started there unless told otherwise. */
export const root = fileURLToPath(new URL("..", import.meta.url));

// rustup puts cargo here, and a shell that was open before its installation does not know it yet.
process.env.PATH = [process.env.PATH, join(homedir(), ".cargo", "bin")].join(delimiter);

/** A failure whose message is the whole story: shown without a stack. */
export class Problem extends Error {}

/**
 * Runs a program to its end and never rejects for its exit code.
 *
 * `output` says what becomes of its standard output and error: "shown" (inherited), "kept" (returned
 * only) or "both". With `limitMs` the program and everything it started is killed after that time.
 */
export function run(command, args, { cwd = root, env = {}, output = "shown", limitMs } = {}) {
  const started = performance.now();
  const [program, programArgs, shell] = resolve(command, args);
  // A group of its own makes it possible to end a program together with all it started.
  const grouped = limitMs !== undefined && process.platform !== "win32";
  const child = spawn(program, programArgs, {
    cwd,
    env: { ...process.env, ...env },
    shell,
    detached: grouped,
    stdio: output === "shown" ? "inherit" : ["ignore", "pipe", "pipe"],
  });
  const end = () => {
    try {
      if (grouped) process.kill(-child.pid, "SIGKILL");
      else child.kill("SIGKILL");
    } catch {
      // It ended by itself in the meantime.
    }
  };
  const interrupted = () => {
    end();
    process.exit(130);
  };
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);

  let kept = "";
  let stdout = "";
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    from?.setEncoding("utf8").on("data", (text) => {
      kept += text;
      if (from === child.stdout) stdout += text;
      if (output === "both") to.write(text);
    });
  }

  return new Promise((settle) => {
    let timedOut = false;
    const timer =
      limitMs &&
      setTimeout(() => {
        timedOut = true;
        end();
      }, limitMs);
    const finish = (code, error) => {
      clearTimeout(timer);
      process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
      const trouble = timedOut ? `it was ended after ${duration(limitMs)}` : error?.message;
      settle({ code: code ?? 1, output: kept, stdout, ms: performance.now() - started, trouble });
    };
    child.on("error", (error) => finish(127, error));
    child.on("close", (code) => finish(code));
  });
}

/** Runs a program as a named step with visible progress; a failure is a `Problem`. */
export async function step(title, command, args, options) {
  console.log(`\n▸ ${title}`);
  const result = await run(command, args, options);
  if (result.code !== 0) {
    const why = result.trouble ?? `exit code ${result.code}`;
    throw new Problem(`${title}: "${[command, ...args].join(" ")}" failed (${why}).`);
  }
  console.log(`✓ ${title} (${duration(result.ms)})`);
  return result;
}

/** Milliseconds as people say them. */
export function duration(ms) {
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** The frame of a script: its work answers the exit code, a `Problem` is told and ends it with 1. */
export async function main(work) {
  try {
    process.exitCode = (await work()) ?? 0;
  } catch (error) {
    console.error(`\n✗ ${error instanceof Problem ? error.message : (error.stack ?? error)}`);
    process.exitCode = 1;
  }
}

/** npm is a script: Node runs it directly where npm started us, and only a shell finds it on Windows. */
function resolve(command, args) {
  const npmScript = process.env.npm_execpath;
  if (command === "npm" && npmScript?.endsWith("npm-cli.js")) return [process.execPath, [npmScript, ...args], false];
  return [command, args, command === "npm" && process.platform === "win32"];
}
