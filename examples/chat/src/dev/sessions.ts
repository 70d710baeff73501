import type { MockSession, MockSessionEvent } from 'tauri-plugin-youyou-agent-api/testing'

type Event = NonNullable<MockSession['events']>[number]

const DAY = 86_400_000

export const user = (turnId: string, text: string): Event =>
  ({ turnId, type: 'userMessage', content: [{ type: 'text', text }] }) satisfies Event

export const answer = (
  turnId: string,
  parts: (MockSessionEvent & { type: 'assistantMessage' })['parts'],
  rest: Partial<MockSessionEvent & { type: 'assistantMessage' }> = {},
): Event => ({
  turnId,
  type: 'assistantMessage',
  parts,
  status: 'complete',
  providerId: 'anthropic',
  modelId: 'claude-sonnet',
  ...rest,
})

/** Ten thousand messages, most of them short. */
function long(): Event[] {
  const events: Event[] = []
  for (let turn = 0; turn < 5_000; turn++) {
    const id = `long-${turn}`
    events.push(user(id, `Question ${turn + 1}: what happens at step ${turn + 1}?`))
    const text =
      turn % 7 === 0
        ? `Step ${turn + 1} has a list:\n\n- first\n- second\n\n\`\`\`rust\nlet step = ${turn + 1};\n\`\`\`\n\nThat is all.`
        : `At step ${turn + 1} nothing special happens. `.repeat(1 + (turn % 5))
    events.push(answer(id, [{ type: 'text', text }]))
  }
  return events
}

/** Everything that a stored session can hold. */
function everything(): Event[] {
  return [
    user('a', 'Read the two configuration files and tell me how they differ.'),
    answer('a', [
      { type: 'reasoning', text: 'Two reads that do not depend on each other: I can run them at once.' },
      { type: 'text', text: 'I will read both at once.' },
      { type: 'toolCall', callId: 'c1', toolName: 'read_file', arguments: { path: 'config/dev.toml' } },
      { type: 'toolCall', callId: 'c2', toolName: 'read_file', arguments: { path: 'config/prod.toml' } },
    ]),
    {
      turnId: 'a',
      type: 'toolResult',
      callId: 'c1',
      toolName: 'read_file',
      output: 'port = 8080\ndebug = true\n',
      isError: false,
      durationMs: 12,
    },
    {
      turnId: 'a',
      type: 'toolResult',
      callId: 'c2',
      toolName: 'read_file',
      output: 'TOOL_EXECUTION_ERROR: there is no file config/prod.toml in the workspace',
      isError: true,
      error: 'TOOL_EXECUTION_ERROR',
      durationMs: 1_840,
    },
    answer('a', [
      { type: 'text', text: 'Only `config/dev.toml` exists. It listens on port **8080** with debugging on.' },
    ]),
    {
      turnId: '',
      type: 'metadata',
      metadata: {
        type: 'compacted',
        method: 'summarized',
        summary: 'The user compares configuration files.',
        boundary: 4,
        shortened: [],
        tokensBefore: 104_200,
        tokensAfter: 9_800,
      },
    },
    user('b', '/summarize the release notes'),
    answer('b', [{ type: 'text', text: 'The release brings three things: a faster parser, and' }], {
      status: 'incomplete',
      interruption: 'cancelled',
    }),
    { turnId: '', type: 'metadata', metadata: { type: 'modelChanged', modelId: 'gpt-large' } },
    user('c', 'Please go on.'),
    answer('c', [{ type: 'text', text: 'It also renames two settings. The old names still work until' }], {
      status: 'incomplete',
      interruption: 'processEnded',
    }),
  ]
}

const short = (id: string): Event[] => [user(id, 'Hello'), answer(id, [{ type: 'text', text: 'Hello. What shall we do?' }])]

/** The list that the mock starts with. */
export function storedSessions(): MockSession[] {
  const now = Date.now()
  return [
    { sessionId: 's-all', title: 'Compare the configuration files', updatedAt: now - 3_600_000, events: everything() },
    { sessionId: 's-long', title: 'A very long chat with ten thousand messages', updatedAt: now - 2 * 3_600_000, events: long() },
    { sessionId: 's-zh', title: '用 Python 写一个问候函数', updatedAt: now - DAY, events: short('zh') },
    { sessionId: 's-4', title: 'Plan the migration', updatedAt: now - 3 * DAY, events: short('4') },
    { sessionId: 's-5', title: 'Why does the build take so long?', updatedAt: now - 5 * DAY, events: short('5') },
    { sessionId: 's-6', title: 'Draft the announcement', updatedAt: now - 15 * DAY, events: short('6') },
    { sessionId: 's-7', title: 'Regular expressions for dates', updatedAt: now - 50 * DAY, events: short('7') },
  ]
}
