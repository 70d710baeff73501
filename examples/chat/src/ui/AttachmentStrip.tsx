import { bytes } from '../format'
import { useTexts } from '../i18n'
import type { Attachment } from '../state/attachments'
import { Icon } from './icons'

interface Props {
  attachments: readonly Attachment[]
  onRemove(attachment: Attachment): void
}

/** What will go along with the message, each with a way to take it out again. */
export function AttachmentStrip({ attachments, onRemove }: Props) {
  const { t } = useTexts()
  if (attachments.length === 0) return null
  return (
    <ul className="attachments">
      {attachments.map((attachment) => (
        <li key={attachment.id} className="attachment" data-testid="attachment" title={attachment.name}>
          {attachment.preview ? (
            <img src={attachment.preview} alt={attachment.name} />
          ) : (
            <span className="file-chip">
              <Icon name="file" />
              <span className="file-chip-name">{attachment.name}</span>
              <span className="file-chip-size">{bytes(attachment.size)}</span>
            </span>
          )}
          <button
            type="button"
            className="attachment-remove"
            aria-label={t.composer.remove(attachment.name)}
            onClick={() => onRemove(attachment)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  )
}
