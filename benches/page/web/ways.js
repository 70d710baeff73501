// The ways in which an answer reaches a page. Each takes a script and a listener, and calls it with
// `(text)` for text, `(undefined, bytes)` for the big event; it resolves when the answer is whole.
import { Channel, invoke } from "@tauri-apps/api/core";
import { streamText } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { createSession } from "tauri-plugin-youyou-agent-api";

/** A plain Tauri channel, so many deltas per message. */
export function raw(joined) {
  return async (script, listen) => {
    const onEvent = new Channel();
    let [next, whole] = [1, undefined];
    const ended = new Promise((resolve) => (whole = resolve));
    onEvent.onmessage = (event) => {
      if (event.type === "done") return whole();
      if (event.sequence !== next++) throw new Error("the channel lost the order");
      if (event.type === "big") listen(undefined, event.output.length);
      else listen(event.delta);
    };
    await invoke("raw", { script, joined, onEvent });
    await ended;
  };
}

/** The plugin with its typed client, in a new session. */
export async function ours(script, listen) {
  const session = await createSession({ replace: true });
  const turn = session.send(JSON.stringify(script));
  let last = 0;
  turn.on("event", (event) => {
    if (event.sequence <= last) throw new Error("the client lost the order");
    last = event.sequence;
    if (event.type === "textDelta") listen(event.delta);
    else if (event.type === "toolCallEnd") listen(undefined, event.output.length);
  });
  await turn.result();
}

/** The AI SDK inside the page, as chat apps on Tauri do today. Its model speaks here, too: no process is crossed. */
export async function aiSdk(script, listen) {
  const result = streamText({ model: modelOf(script), prompt: "go", onError: fail });
  for await (const part of result.stream) {
    if (part.type === "text-delta") listen(part.text);
  }
}

/** From the wish to stop until the last event, in milliseconds. */
export const cancels = {
  async ours(script) {
    const session = await createSession({ replace: true });
    const turn = session.send(JSON.stringify({ ...script, hangs: true }));
    await said(script.deltas, (listen) => turn.on("textDelta", ({ delta }) => listen(delta)));
    const began = performance.now();
    const last = new Promise((resolve) => turn.on("turnCancelled", () => resolve(performance.now() - began)));
    await turn.cancel();
    return last;
  },

  async "ai sdk"(script) {
    const aborter = new AbortController();
    const result = streamText({ model: modelOf({ ...script, hangs: true }), prompt: "go", abortSignal: aborter.signal, onError: fail });
    let [length, began] = [0, 0];
    for await (const part of result.stream) {
      if (part.type === "text-delta") {
        length += part.text.length;
        if (length === script.deltas * 20) {
          setTimeout(() => {
            began = performance.now();
            aborter.abort();
          });
        }
      } else if (part.type === "abort") return performance.now() - began;
    }
    throw new Error("no event told of the cancel");
  },
};

function said(deltas, subscribe) {
  return new Promise((resolve) => {
    let length = 0;
    subscribe((text) => {
      length += text.length;
      if (length === deltas * 20) resolve();
    });
  });
}

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 10, text: 10, reasoning: undefined },
};

function modelOf(script) {
  return new MockLanguageModelV4({ doStream: async ({ abortSignal }) => ({ stream: spoken(script, abortSignal) }) });
}

function spoken({ deltas, tickUs = 0, perTick = 1, hangs }, signal) {
  const began = performance.now();
  let at = 0;
  const due = () => (tickUs === 0 ? deltas : Math.min(deltas, Math.ceil(((performance.now() - began) * 1000) / tickUs) * perTick));
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      controller.enqueue({ type: "text-start", id: "t" });
    },
    async pull(controller) {
      if (at === deltas && hangs) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        controller.error(signal.reason);
        return;
      }
      if (at === deltas) {
        controller.enqueue({ type: "text-end", id: "t" });
        controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: USAGE });
        controller.close();
        return;
      }
      while (due() <= at) await new Promise((resume) => setTimeout(resume, 1));
      at += 1;
      controller.enqueue({ type: "text-delta", id: "t", delta: stamp() });
    },
  });
}

/** As the Rust side makes it. */
function stamp() {
  return `${String(Date.now() * 1000 + 500).padStart(16, "0")} ab,`;
}

function fail({ error }) {
  throw error;
}
