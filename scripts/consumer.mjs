// `npm run test:consumer`: a developer with nothing but the README and what is shipped gets an app that answers.
// The app is made by Tauri's own generator, outside the repository, so that nothing of it can be found by
// accident; the README's quick starts are pasted into it, and it is asked in its real window.
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Display, RunningApp, createDataFolder, removeDataFolder } from "../tests/e2e/launch.mjs";
import { until } from "../tests/e2e/webdriver.mjs";
import { prepareMachine } from "./machine.mjs";
import { chat, prepareRootPackages } from "./packages.mjs";
import { Problem, main, root, step } from "./process.mjs";

const NAME = "youyou-consumer";
const CLIENT = "tauri-plugin-youyou-agent-api";
const OUTPUT = join(root, "target", "consumer");
/** Tauri's dependencies are compiled once for the repository and for this app. */
const TARGET = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");

const GENERATOR = "4.7.4";
/** What the generator asks for and the chat app does not fix already in its lock file. */
const PINNED = { "@tauri-apps/cli": "2.12.5", typescript: "6.0.3" };

/** Asked one after the other in one session; the model answers each with what its tool told. */
const QUESTIONS = ["What time is it?", "And now?"];
const ANSWER = /^\[clock runs\]\s+It says (\d+) hours since 1970\.$/;
const ANSWER_LIMIT_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Stricter than the generator's `tsconfig.json`; the client's declarations are checked, too. */
const STRICT = ["--skipLibCheck", "false", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noImplicitOverride"];

await main(async () => {
  if (process.platform !== "linux") throw new Problem("test:consumer runs on Linux only: WebKitWebDriver drives the window.");
  await prepareMachine({ drive: true });
  const readme = await readReadme();
  const client = await packClient();
  const folder = await mkdtemp(join(tmpdir(), `${NAME}-`));
  try {
    const app = await generateApp(folder);
    await pasteReadme(app, readme);
    await pinVersions(app);
    await installClient(app, client);
    await askInWindow(await buildApp(app));
  } catch (error) {
    console.error(`\nThe app was left in ${folder} to look at.`);
    throw error;
  }
  await rm(folder, { recursive: true });
  console.log("\n✓ An app made from the README alone asks the agent, and shows what its tool told.");
});

/** The parts of the README that a developer pastes. */
async function readReadme() {
  const text = await readFile(join(root, "README.md"), "utf8");
  const part = (what, pattern) => {
    const [, found] = text.match(pattern) ?? [];
    if (!found) throw new Problem(`README.md has no ${what} any more: scripts/consumer.mjs looks for ${pattern}.`);
    return found;
  };
  return {
    dependencies: part("[dependencies] block", /```toml\n\[dependencies\]\n(.*?)```/s),
    mainRs: part("main.rs", /<!-- snippet: main\.rs -->\n```rust\S*\n(.*?)```/s),
    chatTs: part("chat.ts", /<!-- snippet: chat\.ts -->\n```ts\n(.*?)```/s),
    capability: part("capability JSON", /In `src-tauri\/capabilities\/default\.json`:\n\n```json\n(.*?)```/s),
  };
}

/** The client as npm would ship it: a tarball, and its path. */
async function packClient() {
  await prepareRootPackages();
  await step("Building the client", "npm", ["run", "build"]);
  await mkdir(OUTPUT, { recursive: true });
  await step("Packing the client", "npm", ["pack", "--pack-destination", OUTPUT]);
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return join(OUTPUT, `${CLIENT}-${version}.tgz`);
}

/** What `npm create tauri-app` makes, in a subfolder; answers its path. */
async function generateApp(folder) {
  await writeFile(join(folder, "package.json"), "{}\n");
  await step("Fetching Tauri's generator of new apps", "npm", ["install", "--prefer-offline", `create-tauri-app@${GENERATOR}`], { cwd: folder });
  const generator = join(folder, "node_modules", "create-tauri-app", "create-tauri-app.js");
  const args = [generator, NAME, "--template", "vanilla-ts", "--manager", "npm", "--yes"];
  await step("Making a new app", process.execPath, args, { cwd: folder });
  return join(folder, NAME);
}

/** Everything a developer does by hand, and the page that shows what the agent says. */
async function pasteReadme(app, { dependencies, mainRs, chatTs, capability }) {
  const manifest = join(app, "src-tauri", "Cargo.toml");
  await writeFile(manifest, withDependencies(await readFile(manifest, "utf8"), dependencies));
  await writeFile(join(app, "src-tauri", "src", "main.rs"), mainRs);
  await writeFile(join(app, "src-tauri", "capabilities", "default.json"), capability);
  await writeFile(join(app, "src", "chat.ts"), chatTs);
  await copyFile(join(root, "tests", "consumer", "index.html"), join(app, "index.html"));
  await copyFile(join(root, "tests", "consumer", "main.ts"), join(app, "src", "main.ts"));
}

/** The generator's manifest with the README's lines under [dependencies]; a crate of both is the README's. */
function withDependencies(manifest, dependencies) {
  const here = dependencies.replace(/(?<= = \{ path = )"\.\.\/youyou-agent([^"]*)"/gm, (_, place) => JSON.stringify(join(root, place)));
  if (here === dependencies) throw new Problem("The [dependencies] block of README.md does not name the crate by a path any more.");
  const nameOf = (line) => line.split(" = ")[0];
  const named = new Set(here.split("\n").map(nameOf));
  return manifest.replace(/^\[dependencies\]\n((?:.+\n)*)/m, (_, generated) => {
    const kept = generated.split("\n").filter((line) => line === "" || !named.has(nameOf(line)));
    return `[dependencies]\n${here}${kept.join("\n")}`;
  });
}

/** Another day's newest versions cannot decide how this ends: npm's and cargo's are those of this repository. */
async function pinVersions(app) {
  const locked = JSON.parse(await readFile(join(chat, "package-lock.json"), "utf8")).packages;
  const file = join(app, "package.json");
  const manifest = JSON.parse(await readFile(file, "utf8"));
  for (const packages of [manifest.dependencies, manifest.devDependencies]) {
    for (const name of Object.keys(packages)) {
      const version = PINNED[name] ?? locked[`node_modules/${name}`]?.version;
      if (!version) throw new Problem(`The generator asks for ${name}: add its version to PINNED in scripts/consumer.mjs.`);
      packages[name] = version;
    }
  }
  await writeFile(file, `${JSON.stringify(manifest, null, 2)}\n`);
  await copyFile(join(root, "Cargo.lock"), join(app, "src-tauri", "Cargo.lock"));
}

async function installClient(app, client) {
  await step("Installing the packed client", "npm", ["install", "--prefer-offline", client], { cwd: app });
  await step("Compiling its TypeScript strictly", "npm", ["exec", "--", "tsc", ...STRICT], { cwd: app });
}

/** Builds frontend and program as the generator's own script does; answers the path of the executable. */
async function buildApp(app) {
  // The repository's own debug information, or every crate would be compiled a second time.
  const env = { CARGO_TARGET_DIR: TARGET, CARGO_PROFILE_DEV_DEBUG: "line-tables-only" };
  await step("Building the app (the first time takes some minutes)", "npm", ["run", "tauri", "build", "--", "--debug", "--no-bundle"], { cwd: app, env });
  return join(TARGET, "debug", NAME);
}

/** Asks in the window; an answer that is not the tool's is a `Problem`. */
async function askInWindow(program) {
  console.log("\n▸ Asking in its window\n");
  const display = await Display.start();
  const dataFolder = await createDataFolder();
  let app;
  try {
    app = await RunningApp.start({ program, display, dataFolder });
    for (const [index, question] of QUESTIONS.entries()) {
      console.log(`You:\n    ${question}\n`);
      const answer = await ask(app.browser, question, index);
      console.log(`The window:\n${answer.replace(/^/gm, "    ")}\n`);
      check(answer);
    }
    const picture = join(OUTPUT, "answered.png");
    // WebKit answers the first screenshot with the frame before the last change.
    await app.browser.screenshot();
    await writeFile(picture, await app.browser.screenshot());
    console.log(`Screenshot: ${picture}`);
  } catch (error) {
    throw new Problem(`The app did not answer as it should: ${error.message}\n${app?.output ?? ""}`);
  } finally {
    await app?.close();
    await display.stop();
    await removeDataFolder(dataFolder);
  }
}

async function ask(browser, question, index) {
  const field = await until("the page to be there", () => browser.find("input"));
  await field.type(question);
  await (await browser.find("button")).click();
  const ended = async () => (await browser.all("pre[aria-busy=false]"))[index];
  return (await until("the end of the answer", ended, ANSWER_LIMIT_MS)).text();
}

/** The page showed the call and then the model's words about the real clock's hour, and nothing else. */
function check(answer) {
  const [, hours] = answer.match(ANSWER) ?? [];
  if (!hours) throw new Error(`it showed "${answer}" and not ${ANSWER}`);
  const off = Math.abs(Number(hours) - Date.now() / HOUR_MS);
  if (off > 2) throw new Error(`the tool's hour is ${off.toFixed(1)} hours away from this machine's`);
}
