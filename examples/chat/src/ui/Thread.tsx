import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { defaultRangeExtractor, useVirtualizer, type Range } from '@tanstack/react-virtual'
import { useTexts } from '../i18n'
import type { Item, Retry } from '../state/thread'
import { Icon } from './icons'
import { AssistantRow } from './rows/AssistantRow'
import { CompactionRow, ErrorRow, NoteRow } from './rows/NoteRow'
import { UserRow } from './rows/UserRow'

/** So many rows are always in the document, so that a short chat can be searched and selected whole. */
const ALWAYS = 40

const rangeExtractor = (range: Range) =>
  range.count <= ALWAYS ? Array.from({ length: range.count }, (_, index) => index) : defaultRangeExtractor(range)

interface Props {
  /** A change of it starts at the end again. */
  threadKey: string
  items: readonly Item[]
  /** Whether a turn runs of which nothing is shown yet. */
  waiting: boolean
  onRetry: Retry | null
}

const WAITING = 'waiting'

/** So near to the end, in pixels, the thread follows what is added. */
const AT_END = 60

/** No thread is so near to its end: for the virtualizer, it is not there. */
const NEVER = -1

/**
 * The messages; of a long thread only those in view are in the document, so that 10,000
 * cost as much as fifty.
 * It follows the end while the reader is there, and holds still when they scrolled away.
 */
export function Thread({ threadKey, items, waiting, onRetry }: Props) {
  const { t } = useTexts()
  const scroller = useRef<HTMLDivElement>(null)
  /** Whether something was unfolded that is not yet measured: until then the thread follows nothing. */
  const [held, setHeld] = useState(false)
  const holding = useRef(0)
  /** Whether the reader is at the end; written on scrolling and unfolding only. */
  const pinned = useRef(true)
  /** Where the thread was last scrolled to. */
  const top = useRef(0)
  const [away, setAway] = useState(false)
  const count = items.length + (waiting ? 1 : 0)

  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => estimate(items[index]),
    getItemKey: (index) => items[index]?.key ?? WAITING,
    overscan: 6,
    rangeExtractor,
    anchorTo: 'end',
    followOnAppend: true,
    // Here and not set on the virtualizer, which takes its options anew with every rendering.
    scrollEndThreshold: held ? NEVER : AT_END,
    paddingEnd: 28,
  })

  useLayoutEffect(() => {
    pinned.current = true
    virtualizer.scrollToEnd()
  }, [virtualizer, threadKey])

  // A message of one's own is always shown, wherever one was reading.
  const newest = items.at(-1)
  const own = newest?.kind === 'user' ? newest.key : null
  useLayoutEffect(() => {
    if (own === null) return
    pinned.current = true
    virtualizer.scrollToEnd()
  }, [virtualizer, own])

  // What a reader unfolds opens downwards in place, also at the end of the thread.
  const holdStill = (event: React.MouseEvent) => {
    if (!(event.target instanceof Element) || !event.target.closest('[aria-expanded]')) return
    pinned.current = false
    setHeld(true)
    // The virtualizer may still have a step towards the end to make, for which the thread was too short:
    // to be told where to be is what makes it forget that.
    if (scroller.current) virtualizer.scrollToOffset(scroller.current.scrollTop)
    cancelAnimationFrame(holding.current)
    // What is unfolded is measured at the end of the next frame, which a busy machine may draw late.
    holding.current = requestAnimationFrame(() => {
      holding.current = requestAnimationFrame(() => setHeld(false))
    })
  }

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (!element) return
    const distance = fromEnd(element)
    // Before an unfolding is measured, every place looks like the end.
    if (distance <= AT_END) pinned.current = !held
    else if (element.scrollTop < top.current) pinned.current = false
    top.current = element.scrollTop
    setAway(distance > 160)
  }, [held])
  useEffect(onScroll, [onScroll, count])

  // The virtualizer follows the end too, but a frame late when much is added at once.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element || !pinned.current) return
    // The reader has scrolled, and the event that says so is still on its way.
    if (element.scrollTop < top.current - 1 && fromEnd(element) > AT_END) {
      pinned.current = false
      return
    }
    element.scrollTop = element.scrollHeight
    top.current = element.scrollTop
  })

  return (
    <div className="thread-area">
      <div
        ref={scroller}
        className="thread"
        role="log"
        aria-label={t.thread.label}
        aria-live="off"
        tabIndex={0}
        data-testid="thread"
        data-count={items.length}
        onScroll={onScroll}
        onClickCapture={holdStill}
      >
        <div className="thread-space" style={{ height: virtualizer.getTotalSize() }}>
          {/* Placed by `top`: WebKit paints rows with a transform more slowly. */}
          {virtualizer.getVirtualItems().map((row) => (
            <div
              key={row.key}
              ref={virtualizer.measureElement}
              data-index={row.index}
              className="row"
              style={{ top: row.start }}
            >
              <div className="row-inner" style={row.index === 0 ? { paddingTop: 24 } : undefined}>
                <Row item={items[row.index]} onRetry={row.index === items.length - 1 ? onRetry : null} />
              </div>
            </div>
          ))}
        </div>
      </div>
      <Announcer items={items} />
      {away && (
        <button
          type="button"
          className="icon-button to-bottom"
          aria-label={t.thread.toBottom}
          title={t.thread.toBottom}
          onClick={() => {
            pinned.current = true
            virtualizer.scrollToEnd()
          }}
        >
          <Icon name="arrowDown" />
        </button>
      )}
    </div>
  )
}

/** Reads a finished answer to those who listen; while it streams it would only interrupt itself. */
function Announcer({ items }: { items: readonly Item[] }) {
  const newest = items.at(-1)
  const streaming = newest?.kind === 'assistant' && newest.live
  const [heard, setHeard] = useState(false)
  if (streaming && !heard) setHeard(true)
  const text =
    heard && !streaming && newest?.kind === 'assistant'
      ? newest.parts.map((part) => (part.kind === 'text' ? part.text : '')).join(' ')
      : ''
  return (
    <div className="visually-hidden" aria-live="polite">
      {text.slice(0, 4_000)}
    </div>
  )
}

const fromEnd = (element: HTMLElement | null) =>
  element ? element.scrollHeight - element.scrollTop - element.clientHeight : 0

interface RowProps {
  item: Item | undefined
  onRetry: Props['onRetry']
}

function Row({ item, onRetry }: RowProps) {
  switch (item?.kind) {
    case undefined:
      return <Waiting />
    case 'user':
      return <UserRow item={item} />
    case 'assistant':
      return <AssistantRow item={item} onRetry={onRetry} />
    case 'compaction':
      return <CompactionRow item={item} />
    case 'note':
      return <NoteRow item={item} onRetry={onRetry} />
    case 'error':
      return <ErrorRow item={item} onRetry={onRetry} />
  }
}

function Waiting() {
  const { t } = useTexts()
  return (
    <p className="waiting" data-testid="waiting">
      <span className="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      {t.thread.thinking}
    </p>
  )
}

/** A guess good enough that the scroll bar hardly moves when a row is measured. */
function estimate(item: Item | undefined): number {
  switch (item?.kind) {
    case 'user': {
      const length = item.content.reduce(
        (sum, block) => sum + (block.type === 'text' ? block.text.length : 0),
        0,
      )
      return 90 + Math.ceil(length / 70) * 24
    }
    case 'assistant':
      return item.parts.reduce(
        (sum, part) => sum + (part.kind === 'text' ? 24 + Math.ceil(part.text.length / 85) * 26 : 50),
        50,
      )
    case 'compaction':
      return 70
    case 'error':
      return 110
    case 'note':
    case undefined:
      return 42
  }
}
