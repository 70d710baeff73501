// `npm start`: from a fresh clone to the open chat app.
// Without a display the same app is driven through one conversation, which is printed and photographed.
import { buildApp } from "./app.mjs";
import { hasDisplay, prepareMachine } from "./machine.mjs";
import { main, run } from "./process.mjs";

await main(async () => {
  const seen = hasDisplay();
  await prepareMachine({ drive: !seen });
  const program = await buildApp();
  if (seen) {
    console.log("\n▸ Opening the chat app (it ends when its window is closed)");
    const { code } = await run(program, []);
    return code;
  }
  const { demonstrate } = await import("./demo.mjs");
  await demonstrate(program);
});
