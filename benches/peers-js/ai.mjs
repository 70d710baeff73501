// The AI SDK with a model that follows the script.
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { DELTA, answer, history } from "./workloads.mjs";

export const peer = "ai 7.0.173";

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 10, text: 10, reasoning: undefined },
};

const echo = tool({
  description: "Gives back its text.",
  inputSchema: jsonSchema({ type: "object", properties: { text: { type: "string" } }, required: ["text"] }),
  execute: async ({ text }) => text,
});

/** The messages of a session: the SDK keeps none itself. */
export function prepare(workload) {
  const messages = history(workload).map(({ fromUser, text, image }) => {
    if (image) return { role: "user", content: [{ type: "file", data: image, mediaType: "image/png" }] };
    return fromUser ? { role: "user", content: text } : { role: "assistant", content: [{ type: "text", text }] };
  });
  return { messages, calls: 0 };
}

export async function turn(workload, session) {
  const seen = { deltas: 0, toolResults: 0, textLength: 0, modelCalls: -session.calls };
  const model = new MockLanguageModelV4({
    doStream: async () => ({ stream: pulled(chunks(answer(workload, session.calls++))) }),
  });
  const began = performance.now();
  session.messages.push({ role: "user", content: "go" });
  const result = streamText({ model, messages: session.messages, tools: { echo }, stopWhen: isStepCount(1_000), onError: fail });
  for await (const part of result.stream) {
    if (part.type === "text-delta") {
      seen.deltas += 1;
      seen.textLength += part.text.length;
    } else if (part.type === "tool-result") seen.toolResults += 1;
  }
  const micros = (performance.now() - began) * 1e3;
  seen.modelCalls += session.calls;
  return { micros, seen };
}

export async function cancel(workload, session) {
  const aborter = new AbortController();
  const said = chunks(answer(workload, 0)).slice(0, -2);
  const model = new MockLanguageModelV4({
    doStream: async ({ abortSignal }) => ({ stream: hanging(said, abortSignal) }),
  });
  const result = streamText({ model, messages: [{ role: "user", content: "go" }], abortSignal: aborter.signal, onError: fail });
  let [deltas, began, micros] = [0, 0, undefined];
  for await (const part of result.stream) {
    if (part.type === "text-delta") {
      deltas += 1;
      if (deltas === workload.deltas) {
        await new Promise((resume) => setImmediate(resume));
        began = performance.now();
        aborter.abort();
      }
    } else if (part.type === "abort") micros = (performance.now() - began) * 1e3;
  }
  if (micros === undefined) throw new Error("no event told of the cancel");
  return { micros, seen: { deltas } };
}

function chunks({ calls, deltas }) {
  const start = { type: "stream-start", warnings: [] };
  const finish = (unified) => ({ type: "finish", finishReason: { unified, raw: undefined }, usage: USAGE });
  if (calls.length > 0) {
    const asked = calls.map(({ id, text }) => ({ type: "tool-call", toolCallId: id, toolName: "echo", input: JSON.stringify({ text }) }));
    return [start, ...asked, finish("tool-calls")];
  }
  const texts = Array.from({ length: deltas }, () => ({ type: "text-delta", id: "t", delta: DELTA }));
  return [start, { type: "text-start", id: "t" }, ...texts, { type: "text-end", id: "t" }, finish("stop")];
}

/** One chunk per pull, as a network would. */
function pulled(chunks) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < chunks.length) controller.enqueue(chunks[at++]);
      else controller.close();
    },
  });
}

/** The chunks, and then nothing until the abort. */
function hanging(chunks, signal) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < chunks.length) {
        controller.enqueue(chunks[at++]);
        return;
      }
      return new Promise((resume) => {
        const stop = () => {
          controller.error(signal.reason);
          resume();
        };
        signal.addEventListener("abort", stop, { once: true });
      });
    },
  });
}

function fail({ error }) {
  throw error;
}
