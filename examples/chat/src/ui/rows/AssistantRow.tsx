import { memo, useState } from 'react'
import { useTexts } from '../../i18n'
import { Markdown } from '../../markdown/Markdown'
import { isEarlyEnd, type AssistantItem, type Part, type Retry } from '../../state/thread'
import { CopyButton } from '../CopyButton'
import { Icon } from '../icons'
import { RetryButton } from './RetryButton'
import { ToolCard } from './ToolCard'

interface Props {
  item: AssistantItem
  /** Given to the last row only, while nothing runs. */
  onRetry: Retry | null
}

/** One answer of the model: its parts in order, and whether it is whole. */
export const AssistantRow = memo(function AssistantRow({ item, onRetry }: Props) {
  const { t } = useTexts()
  const text = item.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
  const last = item.parts.length - 1
  return (
    <article
      className="assistant"
      data-testid="message-assistant"
      data-state={item.live ? 'streaming' : item.interruption ? 'incomplete' : 'complete'}
      aria-label={t.thread.assistant}
      aria-busy={item.live}
    >
      {item.parts.map((part, index) => (
        <PartView key={index} part={part} live={item.live && index === last} />
      ))}
      {item.interruption && (
        <p className="incomplete" data-testid="incomplete-note">
          <Icon name="pause" />
          {t.thread.incomplete[item.interruption]}
          {onRetry && !isEarlyEnd(item.interruption) && <RetryButton quiet onClick={() => onRetry(item.turnId)} />}
        </p>
      )}
      {item.parts.at(-1)?.kind === 'text' && (
        // Keeps its height while the answer streams, so that nothing moves when it ends.
        <div className="row-actions" style={item.live ? { visibility: 'hidden' } : undefined}>
          <CopyButton text={text} label={t.thread.copyMessage} />
        </div>
      )}
    </article>
  )
})

const PartView = memo(function PartView({ part, live }: { part: Part; live: boolean }) {
  switch (part.kind) {
    case 'text':
      return <Markdown text={part.text} live={live} />
    case 'reasoning':
      return <Reasoning text={part.text} live={live} />
    case 'tool':
      return <ToolCard tool={part.tool} />
  }
})

function Reasoning({ text, live }: { text: string; live: boolean }) {
  const { t } = useTexts()
  const [open, setOpen] = useState(false)
  return (
    <div className="reasoning" data-testid="reasoning">
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" className="chevron" />
        {live ? t.thread.reasoningLive : t.thread.reasoning}
      </button>
      {open && <div className="reasoning-text">{text}</div>}
    </div>
  )
}
