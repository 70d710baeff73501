import { memo, useState } from 'react'
import { bytes } from '../../format'
import { useTexts } from '../../i18n'
import type { UserItem } from '../../state/thread'
import { CopyButton } from '../CopyButton'
import { Icon } from '../icons'
import { Lightbox } from '../Lightbox'

/** What the user said: attachments above, text in a bubble. */
export const UserRow = memo(function UserRow({ item }: { item: UserItem }) {
  const { t } = useTexts()
  const text = item.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
  const attached = item.content.filter((block) => block.type !== 'text')
  return (
    <article className="user" data-testid="message-user" aria-label={t.thread.you}>
      {attached.length > 0 && (
        <div className="user-files">
          {attached.map((block, index) =>
            block.type === 'image' ? (
              <Thumb key={index} mediaType={block.mediaType ?? ''} data={block.data} />
            ) : block.type === 'file' ? (
              <FileChip key={index} name={block.name} text={block.text} />
            ) : null,
          )}
        </div>
      )}
      {text !== '' && <div className="user-text">{withSkill(text)}</div>}
      <div className="row-actions">
        <CopyButton text={text} label={t.thread.copyMessage} />
      </div>
    </article>
  )
})

/** A skill call stands out at the very start, where alone it is one. */
function withSkill(text: string) {
  const match = /^\/[\p{L}\p{N}_-]+(?=\s|$)/u.exec(text)
  if (!match) return text
  return (
    <>
      <span className="skill-name">{match[0]}</span>
      {text.slice(match[0].length)}
    </>
  )
}

function Thumb({ mediaType, data }: { mediaType: string; data: string }) {
  const { t } = useTexts()
  const [large, setLarge] = useState(false)
  // A history without images keeps their place.
  if (data === '') {
    return (
      <span className="file-chip">
        <Icon name="file" />
        <span className="file-chip-name">{t.thread.image}</span>
      </span>
    )
  }
  const source = data.startsWith('data:') ? data : `data:${mediaType};base64,${data}`
  return (
    <>
      <button type="button" className="thumb" aria-label={t.thread.enlarge} onClick={() => setLarge(true)}>
        <img src={source} alt={t.thread.image} decoding="async" />
      </button>
      {large && <Lightbox source={source} onClose={() => setLarge(false)} />}
    </>
  )
}

function FileChip({ name, text }: { name: string; text: string }) {
  const { t } = useTexts()
  const [open, setOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        className="file-chip"
        aria-label={t.thread.file(name)}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="file" />
        <span className="file-chip-name">{name}</span>
        <span className="file-chip-size">{bytes(new Blob([text]).size)}</span>
      </button>
      {open && <pre className="file-text">{text}</pre>}
    </>
  )
}
