import { useEffect, useRef } from 'react'
import { createPortal } from 'react-dom'
import { useTexts } from '../i18n'

/** An image at full size; a click or Esc closes it. */
export function Lightbox({ source, onClose }: { source: string; onClose(): void }) {
  const { t } = useTexts()
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return createPortal(
    <dialog ref={dialog} className="lightbox" aria-label={t.thread.image} onClose={onClose} onClick={onClose}>
      <img src={source} alt={t.thread.image} />
    </dialog>,
    document.body,
  )
}
