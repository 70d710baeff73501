// `npm run check`: form, lints, docs, types and generated files. One line per step; a failure shows its output.
import { CHAT_FEATURES, COMPANIONS, buildFrontend } from "./app.mjs";
import { prepareMachine } from "./machine.mjs";
import { chat } from "./packages.mjs";
import { duration, main, run } from "./process.mjs";

const CORE = ["--no-default-features", "--features", "testing"];
const PLUGIN = ["--features", "bindings,__ipc-test"];
const DENY = ["--", "-D", "warnings"];

/** What a build writes into the repository besides its own folders. */
const GENERATED = ["permissions", "guest-js/bindings.ts"];

const STEPS = [
  { title: "rustfmt", command: ["cargo", "fmt", "--all", "--check"] },
  { title: "types: client", command: ["npm", "run", "typecheck"] },
  { title: "types: frontend", command: ["npm", "run", "typecheck"], cwd: chat },
  { title: "client: build", command: ["npm", "run", "build"] },
  { title: "client: package", command: ["npm", "exec", "--", "publint", "--strict"] },
  { title: "client: entry points", command: ["npm", "exec", "--", "attw", "--pack", "."] },
  { title: "clippy: agent alone", command: ["cargo", "clippy", ...CORE, "--all-targets", ...DENY] },
  { title: "clippy: crates", command: ["cargo", "clippy", ...COMPANIONS, "--all-targets", ...DENY] },
  { title: "clippy: plugin", command: ["cargo", "clippy", ...PLUGIN, "--all-targets", ...DENY] },
  { title: "clippy: chat app", command: ["cargo", "clippy", "-p", "youyou-chat", ...CHAT_FEATURES, "--all-targets", ...DENY] },
  { title: "docs", command: ["cargo", "doc", "--no-deps", ...PLUGIN], env: { RUSTDOCFLAGS: "-D warnings" } },
  { title: "docs: crates", command: ["cargo", "doc", "--no-deps", ...COMPANIONS], env: { RUSTDOCFLAGS: "-D warnings" } },
  { title: "bindings", command: ["cargo", "test", ...PLUGIN, "--lib", "bindings"] },
  // The steps before have written them anew: what git now sees was not current.
  { title: "generated files", command: ["git", "status", "--porcelain", "--", ...GENERATED], silent: true },
];

async function check({ title, command, cwd, env, silent }) {
  process.stdout.write(`${title.padEnd(22)} `);
  const [program, ...args] = command;
  const { code, output, ms } = await run(program, args, { cwd, env, output: "kept" });
  const good = code === 0 && !(silent && output.trim());
  console.log(`${good ? "ok" : "FAILED"}  ${duration(ms)}`);
  if (!good) console.log(`\n${command.join(" ")}\n${output}`);
  return good;
}

await main(async () => {
  await prepareMachine();
  await buildFrontend();
  console.log("");
  let failed = 0;
  for (const one of STEPS) failed += (await check(one)) ? 0 : 1;
  console.log(failed === 0 ? "\nEverything is in order." : `\n${failed} of ${STEPS.length} steps failed.`);
  return failed === 0 ? 0 : 1;
});
