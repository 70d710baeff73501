import { memo, useRef, type ReactNode } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import remend from 'remend'
import { useTexts } from '../i18n'
import { openExternal } from '../backend'
import { cut, noBlocks } from './blocks'
import { CodeBlock } from './CodeBlock'
import { joinIdeographs } from './ideographs'

// react-markdown shows raw HTML as text as long as no plugin revives it: none does here.
const plugins = [remarkGfm, joinIdeographs]

const components: Components = {
  a: ({ href, children }) => <ExternalLink href={href ?? ''}>{children}</ExternalLink>,
  img: ({ src, alt }) => <BlockedImage src={typeof src === 'string' ? src : ''} alt={alt ?? ''} />,
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children, node }) => {
    const code = String(children ?? '')
    const language = /language-([\w+#.-]+)/.exec(className ?? '')?.[1] ?? ''
    const start = node?.position?.start
    const end = node?.position?.end
    const block = language !== '' || code.endsWith('\n') || (start && end && start.line !== end.line)
    if (!block) return <code>{children}</code>
    return <CodeBlock code={code.replace(/\n$/, '')} language={language} />
  },
  table: ({ children }) => (
    <div className="table-scroll" tabIndex={0} role="group">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <Task done={checked === true} />,
}

/** A link that the system's browser opens: the webview itself never leaves the app. */
function ExternalLink({ href, children }: { href: string; children: ReactNode }) {
  const { t } = useTexts()
  const safe = /^(https?|mailto):/i.test(href)
  if (!safe) return <span className="dead-link">{children}</span>
  const open = (event: { preventDefault(): void }) => {
    event.preventDefault()
    void openExternal(href)
  }
  return (
    <a
      href={href}
      title={t.thread.openLink(href)}
      rel="noreferrer noopener"
      target="_blank"
      onClick={open}
      onAuxClick={open}
      draggable={false}
    >
      {children}
    </a>
  )
}

/** A box of a task list; the model ticks it, the reader cannot. */
function Task({ done }: { done: boolean }) {
  const { t } = useTexts()
  return <input type="checkbox" checked={done} disabled readOnly aria-label={t.thread.task(done)} />
}

/** Loading an image would tell its server what was asked, so it is a link instead. */
function BlockedImage({ src, alt }: { src: string; alt: string }) {
  const { t } = useTexts()
  return <ExternalLink href={src}>{t.thread.imageBlocked(alt)}</ExternalLink>
}

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={components}>
      {text}
    </ReactMarkdown>
  )
})

/** Markdown that may still be growing. Finished blocks are rendered once. */
export const Markdown = memo(function Markdown({ text, live }: { text: string; live: boolean }) {
  const known = useRef(noBlocks)
  const { blocks } = (known.current = cut(text, known.current))
  const last = blocks.length - 1
  return (
    <div className="markdown">
      {blocks.map((block, index) => (
        <Block key={index} text={live && index === last ? closed(block) : block} />
      ))}
    </div>
  )
})

/** The block with what is open in it closed, so that `**bold` does not flicker. */
function closed(block: string): string {
  return remend(block, { linkMode: 'text-only' })
}
