// An app that uses the built package as it is shipped, with every strict option on and the
// declarations checked too. It is compiled, not run.
import {
  AgentError,
  createSession,
  reduceTurn,
  type AgentEvent,
  type ContentBlock,
  type Session,
  type Turn,
  type TurnState,
} from 'tauri-plugin-youyou-agent-api';
import { mockAgent, type MockStep } from 'tauri-plugin-youyou-agent-api/testing';

const steps: MockStep[] = ['Hello', { tool: 'read', output: 'X' }, { fail: { code: 'PROVIDER_ERROR' } }];
const agent = mockAgent({ turns: [steps] });

const session: Session = await createSession({ modelId: undefined, replace: true });
const content: ContentBlock[] = [{ type: 'text', text: 'hi' }];
const turn: Turn = session.send(content, { signal: new AbortController().signal, temperature: undefined });
let state: TurnState | undefined;
const off: () => void = turn.on('event', (event: AgentEvent) => {
  state = reduceTurn(state, event);
});
turn.on('toolCallEnd', ({ callId, output, durationMs }) => [callId, output, durationMs.toFixed()]);
for await (const piece of turn.textStream) piece.toUpperCase();
try {
  const { status, text }: { status: 'completed' | 'cancelled'; text: string } = await turn.result();
  [status, text].join();
} catch (error) {
  if (AgentError.is(error, 'SESSION_BUSY')) error.retryAfterMs?.toFixed();
}
off();
for (const part of state?.parts ?? []) if (part.type === 'tool') part.output?.length;
await session[Symbol.asyncDispose]();
agent.remove();
