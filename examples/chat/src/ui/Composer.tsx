import { memo, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import type { ContentBlock, ModelEntry } from 'tauri-plugin-youyou-agent-api'
import { useTexts } from '../i18n'
import { COUNT_LIMIT, readAttachment, type Attachment } from '../state/attachments'
import { catalog } from '../state/catalog'
import { keepAttachments, loadAttachments, loadDraft, moveDraft, saveDraft } from '../state/drafts'
import { completeSkill, matchingSkills, skillQuery } from '../state/slash'
import { useStore } from '../state/store'
import { AttachmentStrip } from './AttachmentStrip'
import { Icon } from './icons'
import { composing } from './keyboard'
import { SkillMenu } from './SkillMenu'
import { TurnStatus, type TurnPhase } from './TurnStatus'
import { useFileDrop } from './useFileDrop'

interface Props {
  sessionId: string | null
  phase: TurnPhase
  /** The chosen model; `null` while it is not known. */
  model: ModelEntry | null
  /** Resolves with `false` when the message was refused: the draft then comes back. */
  onSend(content: ContentBlock[]): Promise<boolean>
  onStop(): void
}

/** Where the message is written. Nothing typed is lost: not by a refusal, not by a reload. */
export const Composer = memo(function Composer({ sessionId, phase, model, onSend, onStop }: Props) {
  const { t } = useTexts()
  const { skills } = useStore(catalog)
  const [text, setText] = useState(() => loadDraft(sessionId))
  const [caret, setCaret] = useState(0)
  const [attachments, setAttachments] = useState(() => loadAttachments(sessionId))
  const [refusals, setRefusals] = useState<string[]>([])
  const [menuClosed, setMenuClosed] = useState(false)
  const [active, setActive] = useState(0)
  const input = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  /** The session of now, for what began before a new chat got its id. */
  const session = useRef(sessionId)
  const idle = phase === 'idle'

  const change = (value: string, at: number) => {
    setText(value)
    setCaret(at)
    setMenuClosed(false)
    setActive(0)
    saveDraft(sessionId, value)
  }

  // Grows with its text, up to what the style sheet allows.
  useLayoutEffect(() => {
    const element = input.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${element.scrollHeight}px`
  }, [text])

  // A new chat got its id: what is being written belongs to it from here on.
  useEffect(() => {
    if (session.current !== sessionId) moveDraft(session.current, sessionId, input.current?.value ?? '')
    session.current = sessionId
  }, [sessionId])

  useEffect(() => keepAttachments(sessionId, attachments), [sessionId, attachments])
  useEffect(() => input.current?.focus(), [sessionId])

  const addFiles = useCallback(
    async (files: readonly File[]) => {
      const read = await Promise.all(files.map((file) => readAttachment(file, t)))
      const good = read.filter((one): one is Attachment => typeof one !== 'string')
      const refused = read.filter((one): one is string => typeof one === 'string')
      setAttachments((before) => {
        const all = [...before, ...good]
        for (const extra of all.slice(COUNT_LIMIT)) if (extra.preview) URL.revokeObjectURL(extra.preview)
        return all.slice(0, COUNT_LIMIT)
      })
      if (attachments.length + good.length > COUNT_LIMIT) refused.push(t.composer.tooMany(COUNT_LIMIT))
      setRefusals(refused)
      input.current?.focus()
    },
    [t, attachments.length],
  )
  const dropping = useFileDrop(addFiles)

  const hasImage = attachments.some((one) => one.block.type === 'image')
  const blind = hasImage && model !== null && !model.capabilities.vision
  const sendable = idle && !blind && (text.trim() !== '' || attachments.length > 0)

  const send = async () => {
    if (!sendable) return
    const content = [...attachments.map((one) => one.block)]
    // The text goes first: a skill call is looked for at the start of the first text.
    if (text.trim() !== '') content.unshift({ type: 'text', text })
    const kept = { text, attachments }
    setText('')
    setAttachments([])
    setRefusals([])
    saveDraft(sessionId, '')
    if (await onSend(content)) {
      for (const one of kept.attachments) if (one.preview) URL.revokeObjectURL(one.preview)
      return
    }
    // At once, so that the reason is never seen without the text. What was typed in the meantime
    // stays, after what came back.
    const typed = input.current?.value ?? ''
    const back = typed === '' ? kept.text : `${kept.text}\n${typed}`
    flushSync(() => {
      setText(back)
      setAttachments((now) => [...kept.attachments, ...now])
    })
    saveDraft(session.current, back)
    input.current?.focus()
  }

  const query = menuClosed ? null : skillQuery(text, caret)
  const matches = query === null ? [] : matchingSkills(skills, query)
  const chosen = matches[Math.min(active, matches.length - 1)]

  const complete = (name: string) => {
    const [value, at] = completeSkill(text, caret, name)
    change(value, at)
    setMenuClosed(true)
    requestAnimationFrame(() => {
      input.current?.focus()
      input.current?.setSelectionRange(at, at)
    })
  }

  const onKeyDown = (event: React.KeyboardEvent<HTMLTextAreaElement>) => {
    if (composing(event.nativeEvent)) return
    if (chosen) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
      if (step) {
        event.preventDefault()
        setActive((Math.min(active, matches.length - 1) + step + matches.length) % matches.length)
        return
      }
      // Enter on a name that is complete already sends.
      const complete_ = event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && chosen.name !== query)
      if (complete_) {
        event.preventDefault()
        complete(chosen.name)
        return
      }
      if (event.key === 'Escape') {
        event.preventDefault()
        event.stopPropagation()
        setMenuClosed(true)
        return
      }
    }
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault()
      void send()
    }
  }

  const onPaste = (event: React.ClipboardEvent) => {
    const { files: pasted, types } = event.clipboardData
    const files = [...pasted]
    if (files.length === 0) return
    // Spreadsheets and word processors put a picture of the text beside the text.
    if (types.includes('text/html') && event.clipboardData.getData('text/plain') !== '') return
    event.preventDefault()
    void addFiles(files)
  }

  const notices = blind ? [t.composer.noVision(model.displayName), ...refusals] : refusals

  return (
    <div className="composer-area">
      {dropping && <div className="drop-target">{t.composer.dropHere}</div>}
      <div className="composer-column">
        {chosen && <SkillMenu skills={matches} active={chosen} onChoose={complete} />}
        {notices.map((notice) => (
          <div key={notice} className="composer-notice" role="alert" data-testid="composer-notice">
            <Icon name="warning" />
            <span>{notice}</span>
            {refusals.includes(notice) && (
              <button
                type="button"
                className="icon-button small"
                aria-label={t.dismiss}
                onClick={() => setRefusals(refusals.filter((one) => one !== notice))}
              >
                <Icon name="close" />
              </button>
            )}
          </div>
        ))}
        <form
          className="composer"
          onSubmit={(event) => {
            event.preventDefault()
            void send()
          }}
        >
          <AttachmentStrip
            attachments={attachments}
            onRemove={(gone) => {
              if (gone.preview) URL.revokeObjectURL(gone.preview)
              setAttachments(attachments.filter((one) => one !== gone))
            }}
          />
          <textarea
            ref={input}
            rows={1}
            value={text}
            placeholder={t.composer.placeholder}
            aria-label={t.composer.label}
            aria-haspopup="listbox"
            aria-autocomplete="list"
            aria-controls={chosen ? 'skill-menu' : undefined}
            aria-activedescendant={chosen ? `skill-${chosen.name}` : undefined}
            data-testid="composer-input"
            onChange={(event) => change(event.target.value, event.target.selectionStart)}
            onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
          />
          <div className="composer-bar">
            <button
              type="button"
              className="icon-button"
              aria-label={t.composer.attach}
              title={t.composer.attach}
              data-testid="attach-button"
              onClick={() => picker.current?.click()}
            >
              <Icon name="clip" />
            </button>
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              data-testid="file-input"
              onChange={(event) => {
                void addFiles([...(event.target.files ?? [])])
                event.target.value = ''
              }}
            />
            <TurnStatus phase={phase} />
            <span className="space" />
            {idle || phase === 'opening' ? (
              <button
                type="submit"
                className="round"
                disabled={!sendable}
                aria-label={t.composer.send}
                title={t.composer.send}
                data-testid="send-button"
              >
                <Icon name="arrowUp" />
              </button>
            ) : (
              <button
                type="button"
                className="round stop"
                disabled={phase === 'stopping'}
                aria-label={phase === 'stopping' ? t.composer.stopping : t.composer.stop}
                title={phase === 'stopping' ? t.composer.stopping : `${t.composer.stop} (Esc)`}
                data-testid="stop-button"
                onClick={onStop}
              >
                {phase === 'stopping' ? <span className="spinner" /> : <StopIcon />}
              </button>
            )}
          </div>
        </form>
        <p className="composer-hint">{t.composer.hint}</p>
      </div>
    </div>
  )
})

const StopIcon = () => (
  <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
    <rect x="6.5" y="6.5" width="11" height="11" rx="2.5" fill="currentColor" />
  </svg>
)
