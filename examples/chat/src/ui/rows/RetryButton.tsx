import { useTexts } from '../../i18n'
import { Icon } from '../icons'

interface Props {
  quiet?: boolean
  onClick(): void
}

/** Tries again what failed or was stopped. */
export function RetryButton({ quiet = false, onClick }: Props) {
  const { t } = useTexts()
  return (
    <button
      type="button"
      className={quiet ? 'button quiet' : 'button'}
      data-testid="retry-button"
      onClick={onClick}
    >
      <Icon name="retry" />
      {t.retry}
    </button>
  )
}
