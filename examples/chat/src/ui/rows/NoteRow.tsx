import { memo } from 'react'
import { tokens } from '../../format'
import { useTexts } from '../../i18n'
import { catalog, modelById } from '../../state/catalog'
import type { CompactionItem, ErrorItem, NoteItem, Retry } from '../../state/thread'
import { Icon } from '../icons'
import { RetryButton } from './RetryButton'

/** Quiet facts between messages. */
export const NoteRow = memo(function NoteRow({ item, onRetry }: { item: NoteItem; onRetry: Retry | null }) {
  const { t, locale } = useTexts()
  const { note } = item
  switch (note.type) {
    case 'retry': {
      const seconds = (note.delayMs / 1000).toLocaleString(locale, { maximumFractionDigits: 1 })
      return (
        <p className="note" data-testid="retry-note">
          <Icon name="retry" />
          <span>
            {t.thread.retrying(note.attempt, seconds)} <span className="note-more">{note.reason}</span>
          </span>
        </p>
      )
    }
    case 'warning':
      return (
        <p className="note warning" data-testid="warning-note">
          <Icon name="warning" />
          <span>{note.message}</span>
        </p>
      )
    case 'imagesRefused':
      return (
        <p className="note warning">
          <Icon name="warning" />
          <span>{t.thread.imagesRefused}</span>
        </p>
      )
    case 'modelChanged':
      return (
        <div className="divider">
          <span className="divider-text">{t.thread.modelChanged(modelName(note.modelId))}</span>
        </div>
      )
    case 'interrupted':
      return (
        <p className="note" data-testid="incomplete-note">
          <Icon name="pause" />
          <span>{t.thread.incomplete[note.interruption]}</span>
          {onRetry && <RetryButton quiet onClick={() => onRetry(item.turnId)} />}
        </p>
      )
  }
})

const modelName = (id: string) => modelById(catalog.get().models, id)?.displayName ?? id

/** Where the context was made smaller. */
export const CompactionRow = memo(function CompactionRow({ item }: { item: CompactionItem }) {
  const { t } = useTexts()
  return (
    <div className="divider" role="separator" data-testid="compaction-divider">
      <span className="divider-text">
        {t.thread.compacted(tokens(item.tokensBefore), tokens(item.tokensAfter))}
        <small>{t.thread.compactedHow[item.method]}</small>
      </span>
    </div>
  )
})

interface ErrorProps {
  item: ErrorItem
  /** Absent while a turn runs, or when a newer turn has made it pointless. */
  onRetry: Retry | null
}

/** What failed, what to do, and a button that does it. */
export const ErrorRow = memo(function ErrorRow({ item, onRetry }: ErrorProps) {
  const { t } = useTexts()
  const { code, message } = item.error
  const advice = t.advice[code]
  return (
    <div className="error-note" role="alert" data-testid="error-note" data-code={code}>
      <Icon name="failed" />
      <div className="error-body">
        <span className="error-code">{code}</span>
        {message} {advice && <span className="error-advice">{advice}</span>}
        {item.canRetry && onRetry && (
          <div className="error-actions">
            <RetryButton onClick={() => onRetry(item.turnId)} />
          </div>
        )}
      </div>
    </div>
  )
})
