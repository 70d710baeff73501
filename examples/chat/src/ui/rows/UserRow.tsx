import { memo, useEffect, useState } from 'react'
import { bytes } from '../../format'
import { useTexts } from '../../i18n'
import { contentWithImages } from '../../state/images'
import type { UserItem } from '../../state/thread'
import { CopyButton } from '../CopyButton'
import { Icon } from '../icons'
import { Lightbox } from '../Lightbox'

/** What the user said: attachments above, text in a bubble. */
export const UserRow = memo(function UserRow({ item }: { item: UserItem }) {
  const { t } = useTexts()
  const text = item.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
  const attached = useImages(item).filter((block) => block.type !== 'text')
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
      {text !== '' && (
        <div className="user-line">
          <div className="row-actions">
            <CopyButton text={text} label={t.thread.copyMessage} />
          </div>
          <div className="user-text">{withSkill(text)}</div>
        </div>
      )}
    </article>
  )
})

/** The content; images that the history left out are read when the row is shown. */
function useImages(item: UserItem): UserItem['content'] {
  const [content, setContent] = useState(item.content)
  const { stored } = item
  const missing = item.content.some((block) => block.type === 'image' && block.data === '')
  useEffect(() => {
    if (!missing || !stored) return
    let here = true
    contentWithImages(stored.sessionId, stored.index).then(
      (whole) => here && whole.length > 0 && setContent(whole),
      // The place of the image stays marked.
      () => undefined,
    )
    return () => {
      here = false
    }
  }, [missing, stored])
  return content
}

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
      <span className="thumb missing" role="img" aria-label={t.thread.image}>
        <Icon name="file" />
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
