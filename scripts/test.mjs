// `npm test`: every suite, one after the other, also after a failure; the last line is the sum.
// `npm run test:<suite>` runs one. What a suite needs is installed and built before it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { CHAT_FEATURES, COMPANIONS, buildApp, buildFrontend } from "./app.mjs";
import { count } from "./counts.mjs";
import { prepareMachine } from "./machine.mjs";
import { chat, prepareChatPackages, prepareRootPackages } from "./packages.mjs";
import { Problem, duration, main, root, run } from "./process.mjs";

const MINUTE_MS = 60_000;

/**
 * The suites in the order of their cost: the quick ones tell first.
 *
 * `prepare` makes it able to run and may answer variables for its environment; `command` is what runs.
 */
const SUITES = [
  {
    name: "scripts",
    about: "these scripts themselves",
    command: () => ["node", "--test", "--test-reporter=spec", ...tests("scripts")],
  },
  {
    name: "core",
    about: "the agent without Tauri",
    prepare: () => prepareMachine({ packages: false }),
    command: () => ["cargo", "test", "--no-fail-fast", "--no-default-features", "--features", "testing"],
  },
  {
    name: "crates",
    about: "the companion crates: providers, SQLite, PostgreSQL",
    prepare: () => prepareMachine({ database: true }),
    command: () => ["cargo", "test", "--no-fail-fast", ...COMPANIONS, "--features", "youyou-agent-providers/__bench"],
  },
  {
    name: "js",
    about: "the TypeScript client",
    prepare: prepareRootPackages,
    command: () => ["npm", "run", "test:js"],
  },
  {
    name: "frontend",
    about: "the chat app's frontend",
    prepare: async () => {
      await prepareRootPackages();
      await prepareChatPackages();
    },
    command: () => ["npm", "test"],
    cwd: chat,
  },
  {
    name: "ipc",
    about: "the plugin's commands, bindings and permissions",
    prepare: () => prepareMachine(),
    command: () => ["cargo", "test", "--no-fail-fast", "--features", "__ipc-test,bindings", "--lib", "--test", "ipc"],
  },
  {
    name: "chat",
    about: "the chat app's backend",
    prepare: async () => {
      await prepareMachine();
      await buildFrontend();
    },
    command: () => ["cargo", "test", "--no-fail-fast", "-p", "youyou-chat", ...CHAT_FEATURES],
  },
  {
    name: "e2e",
    about: "the chat app in the real WebKitGTK window",
    // WebKitWebDriver exists for Linux alone.
    platform: "linux",
    prepare: async () => {
      await prepareMachine({ drive: true });
      return { YOUYOU_CHAT_PROGRAM: await buildApp() };
    },
    command: () => ["node", "--test", "--test-reporter=spec", "--test-concurrency=1", ...tests("tests/e2e")],
    limitMs: 20 * MINUTE_MS,
  },
];

/** The test files of Node's own runner in a folder. */
const tests = (folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".test.mjs"))
    .map((name) => join(folder, name));

async function runSuite({ name, about, platform, prepare, command, cwd, limitMs = 30 * MINUTE_MS }) {
  console.log(`\n━━ test:${name} · ${about}`);
  if (platform && platform !== process.platform) {
    console.log(`   left out: it runs on ${platform} only`);
    return { name, passed: 0, failed: 0, ms: 0 };
  }
  const started = performance.now();
  let counts;
  try {
    const env = (await prepare?.()) ?? {};
    const [program, ...args] = command();
    const { code, output, trouble } = await run(program, args, { cwd, env, output: "both", limitMs });
    if (trouble) console.error(`✗ test:${name}: ${trouble}`);
    counts = count(output, code);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    console.error(`✗ test:${name} could not run. ${error.message}`);
    counts = { passed: 0, failed: 1 };
  }
  return { name, ...counts, ms: performance.now() - started };
}

await main(async () => {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !SUITES.some((suite) => suite.name === name));
  if (unknown.length > 0) {
    throw new Problem(`There is no suite ${unknown.join(", ")}. The suites are: ${SUITES.map(({ name }) => name).join(", ")}.`);
  }
  const results = [];
  for (const suite of SUITES) {
    if (wanted.length === 0 || wanted.includes(suite.name)) results.push(await runSuite(suite));
  }

  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log("");
  for (const { name, passed, failed, ms } of results) {
    console.log(`${failed === 0 ? "✓" : "✗"} ${`test:${name}`.padEnd(14)} ${passed} passed, ${failed} failed (${duration(ms)})`);
  }
  console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`);
  return sum("failed") === 0 ? 0 : 1;
});
