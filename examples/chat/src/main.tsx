import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { LanguageProvider } from './i18n'
import { chat } from './state/chat'
import { factsOf } from './state/errors'
import { applyTheme, watchWidth } from './state/preferences'
import { toast } from './state/toasts'
import { App } from './ui/App'
import './styles/base.css'
import './styles/layout.css'
import './styles/thread.css'
import './styles/markdown.css'
import './styles/composer.css'
import './styles/dialogs.css'

applyTheme()
watchWidth()

async function start(): Promise<void> {
  // `?mock` shows the app in a plain browser: in the development server, and in a build with
  // `--mode mock` to measure with. What ships has no trace of it.
  if ((import.meta.env.DEV || import.meta.env.MODE === 'mock') && new URLSearchParams(location.search).has('mock')) {
    const { mockApp } = await import('./dev/mock')
    mockApp()
  }
  // What is open is known before the first paint, so that a reload does not flash.
  await chat.start().catch((error: unknown) => toast(factsOf(error).message))
  const root = document.getElementById('root')
  if (!root) throw new Error('index.html has no #root')
  createRoot(root).render(
    <StrictMode>
      <LanguageProvider>
        <App />
      </LanguageProvider>
    </StrictMode>,
  )
}

void start()
