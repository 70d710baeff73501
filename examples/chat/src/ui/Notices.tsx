import { useTexts } from '../i18n'
import { chat } from '../state/chat'
import type { ErrorFacts } from '../state/errors'
import type { ThreadModel } from '../state/threadModel'
import { Icon } from './icons'

interface Props {
  shown: ThreadModel
  loadError: ErrorFacts | null
  elsewhere: string | null
  refusal: ErrorFacts | null
}

/** What stands between the user and an answer, with a way out, right above the composer. */
export function Notices({ shown, loadError, elsewhere, refusal }: Props) {
  const { t } = useTexts()
  if (!loadError && elsewhere === null && !refusal) return null
  return (
    <div className="composer-area notices">
      <div className="composer-column">
        {loadError && (
          <div className="composer-notice bad" role="alert" data-testid="error-note" data-code={loadError.code}>
            <Icon name="failed" />
            <span>
              {t.thread.historyFailed} {loadError.message}
            </span>
            <button type="button" className="button" data-testid="retry-button" onClick={() => void shown.load()}>
              {t.retry}
            </button>
          </div>
        )}
        {elsewhere !== null && (
          <div className="composer-notice" role="alert" data-testid="elsewhere-note">
            <Icon name="warning" />
            <span>{t.composer.elsewhere}</span>
            <button type="button" className="button" onClick={() => void chat.show(elsewhere)}>
              {t.composer.showElsewhere}
            </button>
            <button type="button" className="button" onClick={() => void chat.stopElsewhere()}>
              {t.composer.stopElsewhere}
            </button>
          </div>
        )}
        {refusal && (
          <div className="composer-notice bad" role="alert" data-testid="error-note" data-code={refusal.code}>
            <Icon name="failed" />
            <span>
              <strong>{refusal.code}</strong> {refusal.message}
              <span className="advice">{t.advice[refusal.code]}</span>
            </span>
            <button
              type="button"
              className="icon-button small"
              aria-label={t.dismiss}
              onClick={() => chat.state.patch({ refusal: null })}
            >
              <Icon name="close" />
            </button>
          </div>
        )}
      </div>
    </div>
  )
}
