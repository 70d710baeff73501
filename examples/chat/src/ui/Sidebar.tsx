import { memo, useEffect, useMemo, useRef, useState } from 'react'
import type { SessionSummary } from 'tauri-plugin-youyou-agent-api'
import { periodOf, type Period } from '../format'
import { useTexts } from '../i18n'
import type { Texts } from '../i18n/en'
import { sessions } from '../state/sessions'
import { useStore } from '../state/store'
import { Icon } from './icons'
import { shortcut } from './keyboard'
import { SessionRow } from './SessionRow'

interface Props {
  current: string | null
  onOpen(sessionId: string | null): void
  onRemove(session: SessionSummary): void
  onHide(): void
  onSettings(): void
  onWindow(): void
}

/** All sessions by date, with search; arrow keys walk through them. */
export const Sidebar = memo(function Sidebar({ current, onOpen, onRemove, onHide, onSettings, onWindow }: Props) {
  const { t, locale } = useTexts()
  const list = useStore(sessions.state)
  const nav = useRef<HTMLElement>(null)
  const visible = useMemo(
    () => (list.found ?? list.items).filter((one) => !list.hidden.has(one.sessionId)),
    [list.found, list.items, list.hidden],
  )
  const groups = useMemo(() => grouped(visible, t, locale), [visible, t, locale])

  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step || event.target instanceof HTMLInputElement) return
    const rows = [...(nav.current?.querySelectorAll<HTMLElement>('.session-open') ?? [])]
    const at = rows.indexOf(document.activeElement as HTMLElement)
    event.preventDefault()
    rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus()
  }

  return (
    <aside className="sidebar" aria-label={t.sidebar.label}>
      <div className="sidebar-top">
        <span className="brand">
          <img src="/icon.svg" alt="" />
          {t.appName}
        </span>
        <button
          type="button"
          className="icon-button"
          aria-label={t.sidebar.hide}
          title={`${t.sidebar.hide} (${shortcut('B')})`}
          onClick={onHide}
        >
          <Icon name="sidebar" />
        </button>
      </div>
      <div className="sidebar-tools">
        <button
          type="button"
          className="button new-session"
          data-testid="new-session"
          onClick={() => onOpen(null)}
        >
          <Icon name="plus" />
          {t.sidebar.newSession}
          <kbd>{shortcut('N')}</kbd>
        </button>
        <Search value={list.query} />
      </div>
      <nav ref={nav} className="session-list" aria-label={t.sidebar.label} onKeyDown={onKeyDown}>
        {groups.map(([heading, rows]) => (
          <section key={heading} className="session-group">
            <h2>{heading}</h2>
            <ul>
              {rows.map((session) => (
                <SessionRow
                  key={session.sessionId}
                  session={session}
                  current={session.sessionId === current}
                  running={session.sessionId === list.running}
                  onOpen={onOpen}
                  onRemove={onRemove}
                />
              ))}
            </ul>
          </section>
        ))}
        {list.error && (
          <p className="list-note" role="alert">
            {t.sidebar.loadFailed} {list.error.message}{' '}
            <button type="button" className="button" onClick={() => void sessions.refresh()}>
              {t.retry}
            </button>
          </p>
        )}
        {list.loaded && !list.error && visible.length === 0 && (
          <p className="list-note">{list.found ? t.sidebar.noMatch : t.sidebar.empty}</p>
        )}
        {list.nextCursor !== null && list.found === null && (
          <button type="button" className="button quiet" onClick={() => void sessions.loadMore()}>
            {t.sidebar.loadMore}
          </button>
        )}
      </nav>
      <div className="sidebar-foot">
        <button
          type="button"
          className="icon-button"
          data-testid="settings-button"
          title={`${t.header.settings} (${shortcut(',')})`}
          onClick={onSettings}
        >
          <Icon name="settings" />
          {t.header.settings}
        </button>
        <button
          type="button"
          className="icon-button window-button"
          aria-label={t.sidebar.newWindow}
          title={`${t.sidebar.newWindow} (${shortcut('Shift+N')})`}
          data-testid="new-window"
          onClick={onWindow}
        >
          <Icon name="window" />
        </button>
      </div>
    </aside>
  )
})

function Search({ value }: { value: string }) {
  const { t } = useTexts()
  const [text, setText] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => void sessions.search(text), 120)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div className="search" role="search">
      <Icon name="search" />
      <input
        id="session-search"
        className="field"
        type="text"
        value={text}
        placeholder={t.sidebar.search}
        aria-label={t.sidebar.search}
        data-testid="session-search"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape' && text !== '') {
            event.stopPropagation()
            setText('')
          }
        }}
      />
      {text !== '' && (
        <button
          type="button"
          className="icon-button small"
          aria-label={t.sidebar.clearSearch}
          onClick={() => setText('')}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  )
}

/** The rows under their headings, in the order they come. */
function grouped(
  rows: readonly SessionSummary[],
  t: Texts,
  locale: string,
): [string, SessionSummary[]][] {
  const groups = new Map<string, SessionSummary[]>()
  const now = Date.now()
  for (const row of rows) {
    const heading = headingOf(periodOf(row.updatedAt, now), t, locale)
    groups.set(heading, [...(groups.get(heading) ?? []), row])
  }
  return [...groups]
}

function headingOf(period: Period, t: Texts, locale: string): string {
  if (typeof period === 'string') return t.sidebar[period]
  return new Date(period.year, period.month).toLocaleDateString(locale, {
    year: 'numeric',
    month: 'long',
  })
}
