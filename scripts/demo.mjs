// `npm start` on a machine without a display: one conversation with a tool call, held through the real
// window, printed as a transcript and photographed.
import { join } from "node:path";
import { Chat } from "../tests/e2e/chat.mjs";
import { Display, createDataFolder, removeDataFolder } from "../tests/e2e/launch.mjs";
import { Problem, root } from "./process.mjs";

const QUESTIONS = ["hello", "list files", "read README.md and Cargo.toml"];
const PICTURES = join(root, "target", "demo");

/** Drives the program; anything that is not a whole conversation with a tool call is a `Problem`. */
export async function demonstrate(program) {
  console.log("\n▸ No display was found: the app opens on a virtual one and talks with its offline demo model\n");
  const display = await Display.start();
  const dataFolder = await createDataFolder();
  let chat;
  try {
    chat = await Chat.open({ program, display, dataFolder });
    const pictures = [await chat.photograph(PICTURES, "1-opened")];
    let tools = 0;
    for (const [index, question] of QUESTIONS.entries()) {
      await chat.ask(question);
      const { reply } = await chat.unfoldTools();
      tell("You", question);
      for (const entry of reply) tell(...said(entry));
      tools += reply.filter(({ kind, state }) => kind === "tool-card" && state === "done").length;
      pictures.push(await chat.photograph(PICTURES, `${index + 2}-${question.replace(/\W+/g, "-")}`));
    }
    if (tools === 0) throw new Error("the conversation ended without a successful tool call");
    console.log(`✓ A conversation with ${tools} tool call${tools === 1 ? "" : "s"} through the real window. Screenshots:`);
    for (const picture of pictures) console.log(`  ${picture}`);
  } catch (error) {
    throw new Problem(`The conversation through the window failed: ${error.message}`);
  } finally {
    await chat?.close();
    await display.stop();
    await removeDataFolder(dataFolder);
  }
}

function said(entry) {
  const { kind, tool, state, code, text } = entry;
  if (kind === "tool-card") return [`Tool ${tool} (${state})`, `arguments: ${entry.arguments}\nresult:\n${entry.output.trimEnd()}`];
  if (kind === "error-note") throw new Error(`the app showed the error ${code}: ${text}`);
  return ["Answer", text];
}

function tell(who, text) {
  console.log(`${who}:\n${text.replace(/^/gm, "    ")}\n`);
}
