import { useCallback, useEffect, useState } from 'react'
import type { ContentBlock, SessionSummary } from 'tauri-plugin-youyou-agent-api'
import { openWindow } from '../backend'
import { useTexts } from '../i18n'
import { catalog, DEMO, modelById, reloadCatalog } from '../state/catalog'
import { chat } from '../state/chat'
import { factsOf } from '../state/errors'
import { isNarrow, preferences, showSidebar } from '../state/preferences'
import { sessions } from '../state/sessions'
import { useStore } from '../state/store'
import type { Retry } from '../state/thread'
import { toast } from '../state/toasts'
import { Composer } from './Composer'
import { EmptyState } from './EmptyState'
import { Header } from './Header'
import { MemoryPanel } from './MemoryPanel'
import { Notices } from './Notices'
import { SettingsDialog } from './SettingsDialog'
import { Sidebar } from './Sidebar'
import { Thread } from './Thread'
import { Toasts } from './Toasts'
import { phaseOf } from './TurnStatus'
import { useShortcuts } from './useShortcuts'

/** The window. */
export function App() {
  const { t } = useTexts()
  const { shown, opening, elsewhere, refusal } = useStore(chat.state)
  const view = useStore(shown.view)
  const { models } = useStore(catalog)
  const { sidebar } = useStore(preferences)
  useStore(sessions.state)
  const [settings, setSettings] = useState(false)
  const [memory, setMemory] = useState(false)

  useEffect(() => {
    const refresh = () => void sessions.refresh()
    refresh()
    void reloadCatalog()
    // Another window may have changed the list.
    window.addEventListener('focus', refresh)
    return () => window.removeEventListener('focus', refresh)
  }, [])

  const open = useCallback((sessionId: string | null) => {
    void chat.show(sessionId)
    if (isNarrow()) showSidebar(false)
  }, [])

  const remove = useCallback(
    (session: SessionSummary) => {
      const { sessionId } = session
      if (chat.state.get().shown.sessionId === sessionId) void chat.show(null)
      const undo = sessions.remove(
        sessionId,
        () => chat.closeIfOpen(sessionId),
        (facts) => toast(`${facts.code}: ${facts.message}`),
      )
      toast(t.sidebar.deleted(session.title || t.sidebar.untitled), { label: t.undo, run: undo })
    },
    [t],
  )

  const phase = phaseOf(view, opening)
  const hideSidebar = useCallback(() => showSidebar(false), [])
  const newWindow = useCallback(() => {
    openWindow().catch((error: unknown) => toast(factsOf(error).message))
  }, [])
  const openSettings = useCallback(() => setSettings(true), [])
  const send = useCallback((content: ContentBlock[]) => chat.send(content), [])
  const stop = useCallback(() => chat.stop(), [])
  useShortcuts({
    newSession: () => open(null),
    newWindow,
    sidebar: () => showSidebar(!preferences.get().sidebar),
    settings: openSettings,
    stop: phase === 'idle' || phase === 'opening' ? null : stop,
  })

  const items = view.live.length > 0 ? [...view.settled, ...view.live] : view.settled
  const retry = useCallback<Retry>((turnId) => void chat.retry(turnId), [])
  const modelId = chat.modelOf(shown)
  const model = modelById(models, modelId)
  const title = sessions.titleOf(shown.sessionId) ?? ''

  return (
    <div className="app">
      {sidebar && (
        <>
          <Sidebar
            current={shown.sessionId}
            onOpen={open}
            onRemove={remove}
            onHide={hideSidebar}
            onSettings={openSettings}
            onWindow={newWindow}
          />
          <div className="scrim" onClick={hideSidebar} />
        </>
      )}
      <main className="main" data-session={shown.sessionId ?? ''}>
        <Header
          title={title}
          view={view}
          modelId={modelId}
          sidebar={sidebar}
          memory={memory}
          onModel={(id) => chat.setModel(id)}
          onSidebar={() => showSidebar(true)}
          onMemory={() => setMemory(!memory)}
          onSettings={openSettings}
        />
        {view.loading ? (
          <div className="loading" role="status">
            <span className="spinner" />
            {t.thread.earlier}
          </div>
        ) : items.length === 0 && view.turn === null && !view.loadError ? (
          <EmptyState demo={model?.providerId === DEMO} onSuggest={(text) => void chat.send([{ type: 'text', text }])} />
        ) : (
          <Thread
            threadKey={shown.key}
            items={items}
            waiting={phase === 'opening' || phase === 'waiting'}
            onRetry={phase === 'idle' ? retry : null}
          />
        )}
        <Notices shown={shown} loadError={view.loadError} elsewhere={elsewhere} refusal={refusal} />
        <Composer
          key={shown.key}
          sessionId={shown.sessionId}
          phase={phase}
          model={model}
          onSend={send}
          onStop={stop}
        />
      </main>
      {memory && <MemoryPanel onClose={() => setMemory(false)} />}
      {settings && <SettingsDialog onClose={() => setSettings(false)} />}
      <Toasts />
    </div>
  )
}
