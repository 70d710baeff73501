// A script around the app that is ended from outside takes everything along that it started.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { alive, descendants, killAll } from "./processes.mjs";
import { until } from "./webdriver.mjs";

const LIMIT_MS = 120_000;

/** As soak, bench and demo begin; then it waits to be ended. */
const SCRIPT = `
  const { Chat } = await import("./tests/e2e/chat.mjs");
  const { Display, createDataFolder } = await import("./tests/e2e/launch.mjs");
  const display = await Display.start();
  const dataFolder = await createDataFolder();
  await Chat.open({ program: process.env.YOUYOU_CHAT_PROGRAM, display, dataFolder });
  process.once("SIGUSR2", () => { throw new Error("an accident"); });
  console.log(dataFolder);
  setInterval(() => {}, 1_000);`;

/** The signal, whom it reaches, and the exit code that tells of it. */
const ENDS = [
  { title: "SIGTERM", signal: "SIGTERM", code: 143 },
  { title: "SIGINT, as Ctrl-C sends it to all of a terminal", signal: "SIGINT", toAll: true, code: 130 },
  { title: "an error that nobody caught", signal: "SIGUSR2", code: 1 },
];

for (const { title, signal, toAll = false, code } of ENDS) {
  test(`a script ended by ${title} leaves no process and no folder`, { timeout: LIMIT_MS }, async () => {
    const cwd = new URL("../../", import.meta.url);
    const args = ["--input-type=module", "--eval", SCRIPT];
    const script = spawn(process.execPath, args, { cwd, detached: true, stdio: ["ignore", "pipe", "ignore"] });
    let started = [];
    try {
      const [told] = await Promise.race([
        once(script.stdout.setEncoding("utf8"), "data"),
        once(script, "exit").then(([early]) => Promise.reject(new Error(`the script ended with ${early} before it was ready`))),
      ]);
      const folder = told.trim();
      assert.ok(existsSync(folder));
      started = descendants(script.pid);
      const names = started.map(({ name }) => name);
      for (const name of ["Xvfb", "WebKitWebDriver", "youyou-chat"]) assert.ok(names.includes(name), `${name} is among ${names}`);

      const ended = once(script, "exit");
      process.kill(toAll ? -script.pid : script.pid, signal);
      assert.deepEqual(await ended, [code, null]);
      await until("every process to be gone", async () => alive(started).length === 0, 5_000).catch((error) => {
        throw new Error(`${error.message}; left are ${alive(started).map(({ name }) => name)}`);
      });
      assert.ok(!existsSync(folder), "its data folder is removed");
    } finally {
      killAll([...started, ...descendants(script.pid)]);
      script.kill("SIGKILL");
    }
  });
}
