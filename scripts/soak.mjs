// `npm run soak -- --turns 1000`: many turns through the real window, and what they leave behind.
// It fails when memory or open channels grew beyond what is stated here.
import { parseArgs } from "node:util";
import { Chat } from "../tests/e2e/chat.mjs";
import { Display, createDataFolder, removeDataFolder } from "../tests/e2e/launch.mjs";
import { buildApp } from "./app.mjs";
import { prepareMachine } from "./machine.mjs";
import { Problem, main } from "./process.mjs";

const MB = 1024 * 1024;

/** Turns before the first measurement: by then every code path has been compiled and every cache is filled. */
const WARM_UP = 30;

/** Turns in one chat; then a new one begins, so that what grows is a leak and not a long thread. */
const PER_CHAT = 10;

/**
 * How much more may be held at the end than after the warm-up.
 *
 * Both bounds are flat: what a turn leaves behind must not add up. They are what allocators may keep, and
 * in the web process sixty rows of the list of chats, too. The page's open callbacks are exact.
 */
const BOUND = { app: 24 * MB, web: 64 * MB };

/**
 * The page is drawn by WebKit itself. On a machine without a graphics card WebKit would draw through an
 * imitation of one, which lies in the web process, too, and grows for hundreds of turns with whatever is
 * drawn: what the page holds could not be told from it.
 */
const DRAWN_BY_WEBKIT = { WEBKIT_DISABLE_COMPOSITING_MODE: "1" };

/** Every way in which a turn can end, and the tools. `null` is a long answer that is stopped. */
const TURNS = ["hello", "list files", "read README.md and Cargo.toml", "flood 2000", "error", "overflow", null, "read nowhere.txt"];

await main(async () => {
  const { values } = parseArgs({ options: { turns: { type: "string", default: "100" } } });
  const turns = Number(values.turns);
  if (!Number.isInteger(turns) || turns <= WARM_UP) throw new Problem(`--turns must be a whole number above ${WARM_UP}: so many only warm the app up.`);
  await prepareMachine({ drive: true });
  const program = process.env.YOUYOU_CHAT_PROGRAM ?? (await buildApp());
  const display = await Display.start();
  const dataFolder = await createDataFolder();
  let chat;
  try {
    chat = await Chat.open({ program, display, dataFolder, environment: DRAWN_BY_WEBKIT });
    return await soak(chat, turns);
  } finally {
    await chat?.close();
    await display.stop();
    await removeDataFolder(dataFolder);
  }
});

async function soak(chat, turns) {
  console.log(`\n▸ ${turns} turns through the real window\n`);
  let before;
  for (let turn = 0; turn < turns; turn += 1) {
    if (turn === WARM_UP) before = await held(chat, "after the warm-up");
    if (turn % PER_CHAT === 0) await chat.startAnew();
    await take(chat, TURNS[turn % TURNS.length]);
    if ((turn + 1) % 25 === 0) console.log(`  ${String(turn + 1).padStart(5)} turns: ${described(await chat.memory())}, garbage included`);
  }
  const after = await held(chat, "at the end");

  const leaks = [];
  for (const process of ["app", "web"]) {
    const grown = after[process] - before[process];
    if (grown > BOUND[process]) leaks.push(`the ${process} process grew by ${megabytes(grown)}, the bound is ${megabytes(BOUND[process])}`);
  }
  if (after.callbacks > before.callbacks) leaks.push(`open callbacks of the page grew from ${before.callbacks} to ${after.callbacks}`);
  for (const leak of leaks) console.error(`✗ ${leak}`);
  if (leaks.length === 0) console.log(`✓ ${turns} turns stayed within the bounds (app ${megabytes(BOUND.app)}, web ${megabytes(BOUND.web)}, no callback)`);
  return leaks.length === 0 ? 0 : 1;
}

async function take(chat, text) {
  if (text !== null) {
    await chat.ask(text);
    return;
  }
  await chat.send("long answer");
  await chat.untilStreaming(50);
  await chat.press("stop-button");
  await chat.untilIdle();
}

/** What is held, without garbage. */
async function held(chat, when) {
  const found = { ...(await chat.memoryCollected()), callbacks: await chat.openCallbacks() };
  console.log(`\n${when}: ${described(found)}, ${found.callbacks} open callbacks\n`);
  return found;
}

function described({ app, web }) {
  return `app ${megabytes(app)}, web ${megabytes(web)}`;
}

function megabytes(bytes) {
  return `${(bytes / MB).toFixed(1)} MB`;
}
