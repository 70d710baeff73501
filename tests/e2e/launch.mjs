// Starts what a test needs around the app: a display nobody sees, a driver, a fresh data folder.
// Everything started here is ended here, also when the app hangs, and when a signal ends the script.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { endWithMe, removeWithMe, removed } from "./litter.mjs";
import { alive, descendants, killAll, residentBytes } from "./processes.mjs";
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
    const server = endWithMe(spawn("Xvfb", args, { stdio: ["ignore", "ignore", "ignore", "pipe"] }));
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
  return removeWithMe(await mkdtemp(join(tmpdir(), "youyou-chat-")));
}

/** Removes a data folder. */
export async function removeDataFolder(folder) {
  // A killed app's helper processes may still be writing their last bytes.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  removed(folder);
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
  static async start({ program, display, dataFolder, environment = {}, size = { width: 1180, height: 800 } }) {
    const port = await freePort();
    const address = `http://127.0.0.1:${port}`;
    const options = { env: { ...appEnvironment(display, dataFolder), ...environment }, stdio: ["ignore", "pipe", "pipe"] };
    const driver = endWithMe(spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], options));
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
    for (const { pid, name } of descendants(this.#driver.pid)) {
      const kind = this.#program.startsWith(name) ? "app" : name.startsWith("WebKitWebProces") ? "web" : null;
      if (kind) used[kind] += residentBytes(pid);
    }
    return used;
  }

  /** Closes the window, so that the app shuts down in order; whatever is left after that is killed. */
  async close() {
    const processes = descendants(this.#driver.pid);
    await this.browser.quit().catch(() => {});
    const gone = () => until("the app to end", async () => alive(processes).length === 0, 10_000);
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
  killAll([...known, ...(driver.pid ? descendants(driver.pid) : [])]);
  await end(driver);
}
