// pi-agent-core with a stream function that follows the script.
import { Agent } from "@earendil-works/pi-agent-core";
import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";
import { DELTA, answer, history } from "./workloads.mjs";

export const peer = "pi-agent-core 1.6.0";

const USAGE = { input: 10, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 20, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const MODEL = {
  id: "scripted", name: "scripted", api: "scripted", provider: "scripted", baseUrl: "", reasoning: false, input: ["text", "image"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1e8, maxTokens: 1_000,
};

const echo = {
  name: "echo",
  label: "echo",
  description: "Gives back its text.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: async (_id, { text }) => ({ content: [{ type: "text", text }], details: {} }),
};

export function prepare(workload) {
  const session = { calls: 0, aborted: undefined };
  const streamFn = (_model, _context, options) => {
    const stream = createAssistantMessageEventStream();
    say(stream, workload, answer(workload, session.calls++), options?.signal);
    return stream;
  };
  const initialState = { systemPrompt: "s", model: MODEL, tools: [echo], messages: messages(workload) };
  session.agent = new Agent({ initialState, streamFn, getApiKey: () => "x" });
  return session;
}

export async function turn(_workload, session) {
  const seen = { deltas: 0, toolResults: 0, textLength: 0, modelCalls: -session.calls };
  const unsubscribe = session.agent.subscribe((event) => {
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
      seen.deltas += 1;
      seen.textLength += event.assistantMessageEvent.delta.length;
    } else if (event.type === "tool_execution_end" && !event.isError) seen.toolResults += 1;
  });
  const began = performance.now();
  await session.agent.prompt("go");
  const micros = (performance.now() - began) * 1e3;
  unsubscribe();
  seen.modelCalls += session.calls;
  return { micros, seen };
}

export async function cancel(workload, session) {
  let [deltas, began, micros] = [0, 0, undefined];
  session.agent.subscribe((event) => {
    if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
      deltas += 1;
      if (deltas === workload.deltas) {
        setImmediate(() => {
          began = performance.now();
          session.agent.abort();
        });
      }
    } else if (event.type === "agent_end") micros = (performance.now() - began) * 1e3;
  });
  await session.agent.prompt("go");
  if (micros === undefined) throw new Error("no event told of the cancel");
  return { micros, seen: { deltas } };
}

/** One microtask per event, as the pull of a web stream would take. */
async function say(stream, workload, { calls, deltas }, signal) {
  const partial = message([]);
  stream.push({ type: "start", partial });
  for (const [contentIndex, { id, text }] of calls.entries()) {
    const toolCall = { type: "toolCall", id, name: "echo", arguments: { text } };
    partial.content.push(toolCall);
    stream.push({ type: "toolcall_start", contentIndex, partial });
    stream.push({ type: "toolcall_end", contentIndex, toolCall, partial });
    await undefined;
  }
  if (deltas > 0) {
    const said = { type: "text", text: "" };
    partial.content.push(said);
    stream.push({ type: "text_start", contentIndex: 0, partial });
    for (let index = 0; index < deltas; index += 1) {
      said.text += DELTA;
      stream.push({ type: "text_delta", contentIndex: 0, delta: DELTA, partial });
      await undefined;
    }
    if (workload.cancel) {
      await new Promise((resume) => signal.addEventListener("abort", resume, { once: true }));
      partial.stopReason = "aborted";
      stream.push({ type: "error", reason: "aborted", error: partial });
      stream.end();
      return;
    }
    stream.push({ type: "text_end", contentIndex: 0, content: said.text, partial });
  }
  partial.stopReason = calls.length > 0 ? "toolUse" : "stop";
  stream.push({ type: "done", reason: partial.stopReason, message: partial });
  stream.end();
}

function messages(workload) {
  return history(workload).map(({ fromUser, text, image }) => {
    if (image) return { role: "user", content: [{ type: "image", data: image, mimeType: "image/png" }], timestamp: 1 };
    return fromUser ? { role: "user", content: text, timestamp: 1 } : message([{ type: "text", text }]);
  });
}

function message(content) {
  return { role: "assistant", content, api: "scripted", provider: "scripted", model: "scripted", usage: USAGE, stopReason: "stop", timestamp: 1 };
}
