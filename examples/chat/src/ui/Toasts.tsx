import { useTexts } from '../i18n'
import { useStore } from '../state/store'
import { toasts, type Toast } from '../state/toasts'
import { Icon } from './icons'

/** The short messages, the newest last. */
export function Toasts() {
  const { t } = useTexts()
  const all = useStore(toasts)
  const dismiss = (toast: Toast) => toasts.set(toasts.get().filter((one) => one !== toast))
  return (
    <div className="toasts" role="status" aria-live="polite">
      {all.map((toast) => (
        <div key={toast.id} className="toast">
          <span>{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              className="button"
              data-testid="toast-action"
              onClick={() => {
                toast.action?.run()
                dismiss(toast)
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button
            type="button"
            className="icon-button small"
            style={{ color: 'inherit' }}
            aria-label={t.dismiss}
            onClick={() => dismiss(toast)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
