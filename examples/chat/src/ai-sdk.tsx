import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useChat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { AgentError, createSession, currentSession } from 'tauri-plugin-youyou-agent-api'
import { AgentChatTransport, toUIMessages } from 'tauri-plugin-youyou-agent-api/ai-sdk'
import './styles/base.css'
import './styles/ai-sdk.css'

/**
 * The same agent behind `useChat` of the Vercel AI SDK: everything that is built on that
 * hook works on the Rust agent by giving it this transport.
 */

const transport = new AgentChatTransport()

function Page({ history }: { history: UIMessage[] }) {
  const [text, setText] = useState('')
  const { messages, sendMessage, regenerate, stop, status, error } = useChat({
    transport,
    messages: history,
    // After a reload the running turn goes on where it was.
    resume: true,
  })
  const busy = status === 'submitted' || status === 'streaming'
  return (
    <main className="page">
      <h1>useChat over the Rust agent</h1>
      <div role="log" aria-label="Messages">
        {messages.map((message) => (
          <article
            key={message.id}
            className={message.role}
            data-testid={`message-${message.role}`}
          >
            {message.parts.map((part, index) => (
              <PartView key={index} part={part} />
            ))}
          </article>
        ))}
      </div>
      {error && (
        <p role="alert" data-testid="error-note" data-code={AgentError.is(error) ? error.code : 'UNKNOWN'}>
          {error.message}{' '}
          <button type="button" className="button" data-testid="retry-button" onClick={() => void regenerate()}>
            Try again
          </button>
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (busy || text.trim() === '') return
          void sendMessage({ text })
          setText('')
        }}
      >
        <input
          className="field"
          value={text}
          aria-label="Message"
          placeholder="Write a message…"
          data-testid="composer-input"
          onChange={(event) => setText(event.target.value)}
        />
        {busy ? (
          <button type="button" className="button" data-testid="stop-button" onClick={() => void stop()}>
            Stop
          </button>
        ) : (
          <button type="submit" className="button primary" data-testid="send-button">
            Send
          </button>
        )}
      </form>
      <p role="status" data-testid="turn-state" data-state={busy ? 'running' : 'idle'} data-status={status}>
        {status}
      </p>
    </main>
  )
}

type MessagePart = UIMessage['parts'][number]

const toolStates: Record<string, string> = {
  'output-available': 'done',
  'output-error': 'error',
}

function PartView({ part }: { part: MessagePart }) {
  switch (part.type) {
    case 'text':
      return <p className="text">{part.text}</p>
    case 'reasoning':
      return (
        <details>
          <summary>Reasoning</summary>
          <p className="text">{part.text}</p>
        </details>
      )
    case 'dynamic-tool':
      return (
        <details
          data-testid="tool-card"
          data-tool={part.toolName}
          data-state={toolStates[part.state] ?? 'running'}
        >
          <summary>
            {part.toolName} {JSON.stringify(part.input)}
          </summary>
          <pre data-testid="tool-output">{part.state === 'output-error' ? part.errorText : String(part.output ?? '')}</pre>
        </details>
      )
    default:
      return null
  }
}

/** What was said before, of the open session or of a new one. */
async function load(): Promise<UIMessage[]> {
  const session = await currentSession()
  if (!session) {
    await createSession()
    return []
  }
  const { turnId } = await session.info()
  const { items } = await session.fullHistory()
  // The running turn is replayed by `resume`; its answer must not be there twice.
  return toUIMessages(items, { runningTurnId: turnId })
}

async function start(): Promise<void> {
  if (
    (import.meta.env.DEV || import.meta.env.MODE === 'mock') &&
    new URLSearchParams(location.search).has('mock')
  ) {
    const { mockApp } = await import('./dev/mock')
    mockApp()
  }
  const root = createRoot(document.getElementById('root') as HTMLElement)
  try {
    const history = await load()
    root.render(
      <StrictMode>
        <Page history={history} />
      </StrictMode>,
    )
  } catch (error) {
    const { code, message } = AgentError.from(error)
    root.render(
      <p role="alert" data-testid="error-note" data-code={code}>
        {message}
      </p>,
    )
  }
}

void start()
