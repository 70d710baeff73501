import type { ModelEntry, SkillInfo } from 'tauri-plugin-youyou-agent-api'
import { mockAgent, type MockInput, type MockStep } from 'tauri-plugin-youyou-agent-api/testing'
import type { MemoryEntry, Settings } from '../backend'
import { CHINESE, LONG, REASONING } from './answers'
import { storedSessions } from './sessions'

/**
 * The app in a plain browser: `npm run dev`, then open `/?mock`. What a message says
 * chooses what happens: tools, error, retry, hold, refuse, compact, 中文, burst.
 */
export function mockApp(): void {
  mockAgent({
    models,
    skills,
    sessions: storedSessions(),
    turns: answerTo,
    everyMs: 16,
    pieceLength: 14,
    latencyMs: 5,
    otherCommands: app(),
  })
}

function answerTo({ text, retry }: MockInput): MockStep[] {
  const has = (word: string) => text.toLowerCase().includes(word)
  if (has('refuse')) return [{ refuse: { code: 'SESSION_BUSY', message: 'Another turn is running.', retryable: true } }]
  if (has('error') && !retry) {
    return [
      'This answer starts well, and then',
      {
        fail: {
          code: 'PROVIDER_ERROR',
          message: 'Anthropic refused the key (401).',
          retryable: false,
          source: 'provider',
        },
      },
    ]
  }
  if (has('hook')) return [{ fail: { code: 'HOOK_ABORTED', message: 'The plugin "secrets" refused the message.' } }]
  if (has('retry')) {
    return [
      { retry: { code: 'PROVIDER_ERROR', message: 'The server is overloaded (529).' }, attempt: 1, delayMs: 1_500 },
      { warning: 'The plugin "audit" could not write its log; the turn goes on.' },
      'It worked at the second attempt.',
    ]
  }
  if (has('compact')) {
    return [
      { compacted: { tokensBefore: 104_200, tokensAfter: 9_800, messagesRemoved: 42 } },
      'There is room again. Where were we?',
    ]
  }
  if (has('hold')) return ['I have begun, and now I wait', { hold: true }]
  if (has('burst')) return [{ text: LONG.repeat(20), pieceLength: 60, everyMs: 2 }]
  if (has('tool') || has('list') || has('read')) return tools
  if (/[\u4e00-\u9fff]/.test(text)) return [{ reasoning: '用户想要一个简短的例子。' }, CHINESE]
  return [{ delayMs: 600 }, { reasoning: REASONING }, LONG]
}

const tools: MockStep[] = [
  'I will look at the folder first.',
  { tool: 'list_dir', arguments: { path: '.' }, output: 'Cargo.toml\nREADME.md\nsrc/\n', durationMs: 250 },
  'Now both files at once.',
  {
    tools: [
      {
        tool: 'read_file',
        arguments: { path: 'README.md' },
        output: '# Example\n\nA long file.\n'.repeat(300),
        durationMs: 900,
      },
      {
        tool: 'search_files',
        arguments: { pattern: '(error', path: 'src' },
        progress: ['120 files', '480 files'],
        output: 'TOOL_EXECUTION_ERROR: the pattern is no valid regular expression',
        error: 'TOOL_EXECUTION_ERROR',
        durationMs: 1_700,
      },
    ],
  },
  'The folder holds a **Rust crate**. The search failed because its pattern was not valid.',
]

const model = (
  providerId: string,
  id: string,
  displayName: string,
  contextWindow: number,
  reasoning = false,
): ModelEntry => ({
  id,
  displayName,
  providerId,
  contextWindow,
  capabilities: { toolUse: true, vision: providerId !== 'demo', streaming: true, reasoning },
})

const models = [
  model('anthropic', 'claude-sonnet', 'Claude Sonnet', 200_000, true),
  model('anthropic', 'claude-haiku', 'Claude Haiku', 200_000),
  model('openai', 'gpt-large', 'GPT Large', 400_000, true),
  model('ollama', 'qwen3:8b', 'Qwen 3 8B', 32_768),
  model('demo', 'demo', 'Offline demo, not an AI', 16_000, true),
]

const skill = (name: string, displayName: string, description: string): SkillInfo => ({
  name,
  displayName,
  description,
  requiredTools: [],
  allowImplicitInvocation: true,
})

const skills = [
  skill('summarize', 'Summarize', 'Sums up a text, a file or what was said so far.'),
  skill('commit', 'Commit message', 'Writes a commit message for the changes in the workspace.'),
  skill('explain', 'Explain', 'Explains code step by step.'),
]

/** The app's own commands, with just enough memory to look real. */
function app(): (command: string, args: Record<string, unknown>) => unknown {
  const settings: Settings = {
    providers: [
      { id: 'anthropic', displayName: 'Anthropic', hasKey: true, needsKey: true },
      { id: 'openai', displayName: 'OpenAI', hasKey: false, needsKey: true },
      {
        id: 'ollama',
        displayName: 'Ollama',
        hasKey: false,
        needsKey: false,
        endpoint: 'http://127.0.0.1:11434',
      },
      { id: 'demo', displayName: 'Offline demo', hasKey: false, needsKey: false },
    ],
    workspace: '/home/ada/projects/engine',
    demo: true,
  }
  let memories: MemoryEntry[] = [
    { id: 'm1', content: 'Prefers Rust, and short answers with code first.', tags: ['style'], updatedAt: Date.now() - 8e7 },
    { id: 'm2', content: '项目使用 pnpm，不使用 npm。', tags: ['project', 'tools'], updatedAt: Date.now() - 4e8 },
  ]
  return (command, args) => {
    switch (command) {
      case 'get_settings':
        return structuredClone(settings)
      case 'set_provider_key': {
        const provider = settings.providers.find((one) => one.id === args['providerId'])
        if (provider) provider.hasKey = args['key'] !== ''
        return null
      }
      case 'pick_workspace':
        return '/home/ada/projects/other'
      case 'set_workspace':
        settings.workspace = String(args['path'])
        return null
      case 'list_memories':
        return memories
      case 'delete_memory':
        memories = memories.filter((one) => one.id !== args['id'])
        return null
      case 'open_window':
        window.open(location.href)
        return null
      case 'plugin:opener|open_url':
        console.info('opened', args['url'])
        return null
      default:
        throw `Command ${command} not found`
    }
  }
}
