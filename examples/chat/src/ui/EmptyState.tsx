import { useTexts } from '../i18n'

interface Props {
  demo: boolean
  onSuggest(text: string): void
}

/** A new chat: what one may ask, and an honest word about the demo model. */
export function EmptyState({ demo, onSuggest }: Props) {
  const { t } = useTexts()
  return (
    <div className="empty" data-testid="empty-state">
      <img src="/icon.svg" alt="" />
      <h1>{t.thread.emptyTitle}</h1>
      <p>{demo ? t.composer.demo : t.thread.emptyHint}</p>
      <div className="suggestions">
        {t.suggestions.map(({ title, text }) => (
          <button key={title} type="button" data-testid="suggestion" onClick={() => onSuggest(text)}>
            <strong>{title}</strong>
            <span>{text}</span>
          </button>
        ))}
      </div>
    </div>
  )
}
