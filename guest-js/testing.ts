/**
 * Test your user interface without Rust: a scripted agent in the page.
 *
 * It answers the same commands over the same calls as the real one, streams events
 * through real channels, and keeps sessions and history in memory, so that a whole chat
 * can be developed in a plain browser and tested without one.
 *
 * ```ts
 * import { mockAgent } from 'tauri-plugin-youyou-agent-api/testing';
 *
 * const agent = mockAgent({
 *   turns: [[
 *     { reasoning: 'The user wants the files.' },
 *     { tool: 'list_dir', arguments: { path: '.' }, output: 'a.txt', durationMs: 300 },
 *     'There is one file: `a.txt`.',
 *   ]],
 * });
 * // ... drive your page ...
 * agent.remove();
 * ```
 *
 * @packageDocumentation
 */

import { MockAgent } from './testing/agent.js';
import type { MockScript } from './testing/script.js';

export { MockAgent, type MockCall } from './testing/agent.js';
export type {
  MockDelivery,
  MockError,
  MockInput,
  MockScript,
  MockSession,
  MockSessionEvent,
  MockStep,
} from './testing/script.js';

/**
 * Puts a scripted agent into the page, in place of Tauri, until `remove()` is called.
 *
 * Times are real (`setTimeout`), so fake timers of a test runner drive it.
 */
export function mockAgent(script: MockScript = {}): MockAgent {
  return new MockAgent(script);
}
