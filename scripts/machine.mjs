// What a machine needs before anything can be built: Rust, Node.js, and Debian's packages on Linux.
// Rust and Node.js are expected; system packages are installed where that is possible.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { Problem, root, run, step } from "./process.mjs";

const OLDEST_NODE = 20;

/** What building a Tauri app takes. */
const BUILD_PACKAGES = [
  "build-essential",
  "pkg-config",
  "libwebkit2gtk-4.1-dev",
  "libgtk-3-dev",
  "librsvg2-dev",
  "libayatana-appindicator3-dev",
  "libxdo-dev",
  "libssl-dev",
];

/** What driving its window without a display takes besides; a bare machine has no font at all. */
const DRIVE_PACKAGES = ["webkit2gtk-driver", "xvfb", "fonts-dejavu-core"];

/** The server that the PostgreSQL storage is tested against. */
const DATABASE_PACKAGES = ["postgresql"];

/** Checks Node.js and Rust, and installs the system packages; `drive` also asks for WebDriver and Xvfb, `database` for PostgreSQL. */
export async function prepareMachine({ rust = true, packages = true, drive = false, database = false } = {}) {
  checkNode();
  if (rust) await checkRust();
  if (packages && process.platform === "linux") {
    const drivers = drive ? DRIVE_PACKAGES : [];
    await prepareLinux([...BUILD_PACKAGES, ...drivers, ...(database ? DATABASE_PACKAGES : [])]);
  }
}

/** Whether a window would be seen by somebody. */
export function hasDisplay() {
  return process.platform !== "linux" || Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY);
}

function checkNode() {
  if (Number(process.versions.node.split(".")[0]) < OLDEST_NODE) {
    throw new Problem(`Node.js ${OLDEST_NODE} or newer is needed, this is ${process.versions.node}. Install a newer one and run the command again.`);
  }
}

async function checkRust() {
  const wanted = readFileSync(join(root, "Cargo.toml"), "utf8").match(/^rust-version = "(\d+\.\d+)/m)?.[1] ?? "1.91";
  const { code, output } = await run("cargo", ["--version"], { output: "kept" });
  if (code !== 0) {
    throw new Problem(`Rust ${wanted} or newer is needed and no cargo was found. Install Rust with rustup (the Rust website says how), open a new terminal and run the command again.`);
  }
  const found = output.match(/(\d+)\.(\d+)\.\d+/) ?? [];
  const [major, minor] = wanted.split(".").map(Number);
  if (Number(found[1]) < major || (Number(found[1]) === major && Number(found[2]) < minor)) {
    throw new Problem(`Rust ${wanted} or newer is needed, this is ${output.trim()}. Run "rustup update" and then the command again.`);
  }
}

async function prepareLinux(packages) {
  const missing = await missingPackages(packages);
  if (missing.length === 0) return;
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...missing];
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  if (process.getuid() === 0) {
    await step("Refreshing the list of Debian packages", "apt-get", ["update"], { env });
    await step(`Installing ${missing.join(" ")}`, install[0], install.slice(1), { env });
    return;
  }
  const line = `sudo apt-get update && sudo ${install.join(" ")}`;
  if (!(await mayUseSudo(line))) {
    throw new Problem(`These system packages are missing: ${missing.join(" ")}.\nInstall them with\n\n  ${line}\n\nand run the command again.`);
  }
  await step("Refreshing the list of Debian packages", "sudo", ["apt-get", "update"]);
  await step(`Installing ${missing.join(" ")}`, "sudo", install);
}

async function missingPackages(packages) {
  const query = await run("dpkg-query", ["--show", "--showformat=${Package} ${db:Status-Status}\n", ...packages], { output: "kept" });
  if (query.code === 127) {
    await checkOtherLinux();
    return [];
  }
  const installed = new Set(
    query.output
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(" ")[0]),
  );
  return packages.filter((name) => !installed.has(name));
}

/** Without Debian's package manager the one library that decides is looked for itself. */
async function checkOtherLinux() {
  const { code } = await run("pkg-config", ["--exists", "webkit2gtk-4.1"], { output: "kept" });
  if (code !== 0) {
    throw new Problem("The development files of WebKitGTK 4.1 were not found. Install what Tauri 2 needs on this distribution (Tauri's page \"Prerequisites\" lists the packages) and run the command again.");
  }
}

async function mayUseSudo(line) {
  const { code } = await run("sudo", ["-V"], { output: "kept" });
  if (code !== 0 || !process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`System packages are missing. May this be run?\n\n  ${line}\n\n[Y/n] `);
  terminal.close();
  return ["", "y", "yes"].includes(answer.trim().toLowerCase());
}
