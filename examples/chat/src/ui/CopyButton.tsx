import { useEffect, useState } from 'react'
import { useTexts } from '../i18n'
import { Icon } from './icons'

/** Copies a text and says so for a moment. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const { t } = useTexts()
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1600)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = () => void copyText(text).then((done) => setCopied(done))
  return (
    <button
      type="button"
      className="icon-button small"
      aria-label={copied ? t.copied : label}
      title={copied ? t.copied : label}
      onClick={copy}
    >
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  )
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // WebKitGTK may refuse the asynchronous clipboard; the old way still works there.
    const area = document.createElement('textarea')
    area.value = text
    area.style.position = 'fixed'
    area.style.opacity = '0'
    const focused = document.activeElement
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    if (focused instanceof HTMLElement) focused.focus()
    return done
  }
}
