import { memo, useState } from 'react'
import type { SessionSummary } from 'tauri-plugin-youyou-agent-api'
import { useTexts } from '../i18n'
import { factsOf } from '../state/errors'
import { sessions } from '../state/sessions'
import { toast } from '../state/toasts'
import { Icon } from './icons'
import { composing } from './keyboard'

interface Props {
  session: SessionSummary
  current: boolean
  running: boolean
  onOpen(sessionId: string): void
  onRemove(session: SessionSummary): void
}

/** One session: Enter opens, F2 renames, Delete deletes (and offers to undo). */
export const SessionRow = memo(function SessionRow({
  session,
  current,
  running,
  onOpen,
  onRemove,
}: Props) {
  const { t } = useTexts()
  const [editing, setEditing] = useState(false)
  const title = session.title || t.sidebar.untitled

  const rename = (value: string) => {
    setEditing(false)
    const wanted = value.trim()
    if (wanted === '' || wanted === session.title) return
    sessions.rename(session.sessionId, wanted).catch((error: unknown) => toast(factsOf(error).message))
  }

  if (editing) {
    return (
      <li className="session">
        <input
          className="field session-rename"
          defaultValue={session.title}
          aria-label={t.sidebar.renameLabel}
          data-testid="session-rename-input"
          autoFocus
          maxLength={200}
          onFocus={(event) => event.target.select()}
          onBlur={(event) => rename(event.target.value)}
          onKeyDown={(event) => {
            if (composing(event.nativeEvent)) return
            if (event.key === 'Enter') rename(event.currentTarget.value)
            if (event.key === 'Escape') {
              event.stopPropagation()
              setEditing(false)
            }
          }}
        />
      </li>
    )
  }
  return (
    <li className={`session ${current ? 'current' : ''}`} data-testid="session-item" data-id={session.sessionId}>
      <button
        type="button"
        className="session-open"
        aria-current={current ? 'page' : undefined}
        title={title}
        onClick={() => onOpen(session.sessionId)}
        onDoubleClick={() => setEditing(true)}
        onKeyDown={(event) => {
          if (event.key === 'F2') setEditing(true)
          if (event.key === 'Delete') onRemove(session)
        }}
      >
        <span className="session-title">{title}</span>
        {running && <span className="spinner" role="img" aria-label={t.sidebar.running} />}
      </button>
      <span className="session-actions" role="group" aria-label={t.sidebar.actions(title)}>
        <button
          type="button"
          className="icon-button small"
          aria-label={t.sidebar.rename}
          title={`${t.sidebar.rename} (F2)`}
          data-testid="session-rename"
          onClick={() => setEditing(true)}
        >
          <Icon name="edit" />
        </button>
        <button
          type="button"
          className="icon-button small"
          aria-label={t.sidebar.remove}
          title={t.sidebar.remove}
          data-testid="session-delete"
          onClick={() => onRemove(session)}
        >
          <Icon name="trash" />
        </button>
      </span>
    </li>
  )
})
