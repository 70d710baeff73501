// Starts what a test needs around the app: a display nobody sees, a driver, a fresh data folder.
// Everything started here is ended here, also when the app hangs.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Browser, until } from "./webdriver.mjs";

/** A virtual screen, shared by the apps that are started on it one after the other. */
export class Display {
  #server;

  constructor(server, name) {
    this.#server = server;
    this.name = name;
  }

  static async start({ width = 1280, height = 860 } = {}) {
    // The X server picks a free number itself and writes it to descriptor 3.
    const args = ["-displayfd", "3", "-screen", "0", `${width}x${height}x24`, "-nolisten", "tcp"];
    const server = spawn("Xvfb", args, { stdio: ["ignore", "ignore", "ignore", "pipe"] });
    const number = await new Promise((resolve, reject) => {
      server.once("error", () => reject(new Error("Xvfb could not be started. Install the package xvfb.")));
      server.once("exit", (code) => reject(new Error(`Xvfb ended at once with code ${code}.`)));
      server.stdio[3].once("data", (text) => resolve(String(text).trim()));
    });
    return new Display(server, `:${number}`);
  }

  async stop() {
    await end(this.#server);
  }
}

/** A data folder of its own: what the app stores is found again by the next start, and by nobody else. */
export async function createDataFolder() {
  return mkdtemp(join(tmpdir(), "youyou-chat-"));
}

/** Removes a data folder. */
export async function removeDataFolder(folder) {
  // A killed app's helper processes may still be writing their last bytes.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** The running app: its window, and the processes behind it. */
export class RunningApp {
  #driver;
  #log;
  /** The file name of the program, as the kernel's short names begin. */
  #program;

  constructor(driver, log, browser, program) {
    this.#driver = driver;
    this.#log = log;
    this.#program = basename(program);
    this.browser = browser;
  }

  /** Starts the program under a driver of its own: WebKitWebDriver serves one session well, not two. */
  static async start({ program, display, dataFolder, size = { width: 1180, height: 800 } }) {
    const port = await freePort();
    const address = `http://127.0.0.1:${port}`;
    const driver = spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], {
      env: appEnvironment(display, dataFolder),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log = [];
    for (const stream of [driver.stdout, driver.stderr]) stream.setEncoding("utf8").on("data", (text) => log.push(text));
    const failed = new Promise((_, reject) => {
      driver.once("error", () => reject(new Error("WebKitWebDriver could not be started. Install the package webkit2gtk-driver.")));
    });
    try {
      await Promise.race([failed, until("WebKitWebDriver to be ready", () => Browser.isReady(address))]);
      const browser = await Browser.start(address, program);
      await browser.resize(size.width, size.height);
      return new RunningApp(driver, log, browser, program);
    } catch (error) {
      await endTree(driver);
      throw new Error(`The app could not be started: ${error.message}\n${log.join("")}`, { cause: error });
    }
  }

  /** What the app and the driver wrote so far. */
  get output() {
    return this.#log.join("");
  }

  /** The resident memory of the app itself and of its web pages, in bytes. */
  async memory() {
    const used = { app: 0, web: 0 };
    for (const { pid, name } of await descendants(this.#driver.pid)) {
      const kind = this.#program.startsWith(name) ? "app" : name.startsWith("WebKitWebProces") ? "web" : null;
      if (kind) used[kind] += await residentBytes(pid);
    }
    return used;
  }

  /** Closes the window, so that the app shuts down in order; whatever is left after that is killed. */
  async close() {
    const processes = await descendants(this.#driver.pid);
    await this.browser.quit().catch(() => {});
    const gone = () => until("the app to end", async () => (await alive(processes)).length === 0, 10_000);
    await gone().catch(() => {});
    await endTree(this.#driver, processes);
  }

  /** Ends the app in the middle of whatever it is doing, as a power cut would. */
  async kill() {
    await endTree(this.#driver);
  }
}

/** The environment of a person's session, with every folder the app could write to made private. */
function appEnvironment(display, dataFolder) {
  const { WAYLAND_DISPLAY: _, ...inherited } = process.env;
  return {
    ...inherited,
    DISPLAY: display.name,
    GDK_BACKEND: "x11",
    LANG: "C.UTF-8",
    TAURI_AUTOMATION: "true",
    TAURI_WEBVIEW_AUTOMATION: "true",
    YOUYOU_CHAT_DATA_DIR: dataFolder,
    XDG_DATA_HOME: join(dataFolder, "xdg-data"),
    XDG_CONFIG_HOME: join(dataFolder, "xdg-config"),
    XDG_CACHE_HOME: join(dataFolder, "xdg-cache"),
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** Kills the driver and all that came from it; `known` are processes that may have lost their parent. */
async function endTree(driver, known = []) {
  const processes = [...known, ...(driver.pid ? await descendants(driver.pid) : [])];
  for (const { pid } of await alive(processes)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended between the look and the kill.
    }
  }
  await end(driver);
}

/** Every process below this one. The start time tells a process from a later one with the same id. */
async function descendants(ancestor) {
  const all = await processes();
  const below = (pid) => all.filter(({ parent }) => parent === pid).flatMap((child) => [child, ...below(child.pid)]);
  return below(ancestor);
}

async function alive(known) {
  const all = await processes();
  return known.filter(({ pid, started }) => all.some((one) => one.pid === pid && one.started === started && one.state !== "Z"));
}

async function processes() {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => null)));
  return stats.flatMap((stat) => {
    if (stat === null) return [];
    // The program's name is in parentheses and may contain blanks: count the fields after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    return [{ pid: Number.parseInt(stat, 10), name, state: fields[0], parent: Number(fields[1]), started: fields[19] }];
  });
}

async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(status.match(/^VmRSS:\s+(\d+) kB$/m)?.[1] ?? 0) * 1024;
}
