import { useTexts } from '../../i18n'
import { Icon } from '../icons'

interface Props {
  /** Whether the text is sent anew instead of the turn run again. */
  again?: boolean
  quiet?: boolean
  onClick(): void
}

/** Tries again what failed or was stopped. */
export function RetryButton({ again = false, quiet = false, onClick }: Props) {
  const { t } = useTexts()
  return (
    <button
      type="button"
      className={quiet ? 'button quiet' : 'button'}
      data-testid="retry-button"
      onClick={onClick}
    >
      <Icon name="retry" />
      {again ? t.sendAgain : t.retry}
    </button>
  )
}
