import { memo, useState } from 'react'
import type { JsonValue } from 'tauri-plugin-youyou-agent-api'
import { bytes } from '../../format'
import { useTexts } from '../../i18n'
import type { ToolView } from '../../state/thread'
import { CopyButton } from '../CopyButton'
import { Icon, type IconName } from '../icons'

/** Above this an output starts folded. */
const FOLD = 2_000

const icons: Record<ToolView['state'], IconName> = {
  running: 'info',
  done: 'check',
  error: 'failed',
  skipped: 'skip',
}

/** A tool call: one line with what, how long and how it went; the rest on demand. */
export const ToolCard = memo(function ToolCard({ tool }: { tool: ToolView }) {
  const { t } = useTexts()
  const [open, setOpen] = useState(false)
  const status =
    tool.state === 'running' && tool.progress ? tool.progress : <Duration tool={tool} />
  return (
    <section
      className="tool"
      data-testid="tool-card"
      data-tool={tool.toolName}
      data-state={tool.state}
      aria-label={`${tool.toolName}: ${t.tool[tool.state]}`}
    >
      <button type="button" className="tool-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        {tool.state === 'running' ? (
          <span className="spinner" aria-hidden="true" />
        ) : (
          <Icon name={icons[tool.state]} className="state" />
        )}
        <span className="tool-name">{tool.toolName}</span>
        <span className="tool-brief">{brief(tool.arguments)}</span>
        <span className="tool-status">{status}</span>
        <Icon name="chevron" className="chevron" />
      </button>
      {open && <ToolBody tool={tool} />}
    </section>
  )
})

function Duration({ tool }: { tool: ToolView }) {
  const { t, locale } = useTexts()
  const label = t.tool[tool.state]
  if (tool.durationMs === null || tool.state === 'running') return <>{label}</>
  const took =
    tool.durationMs < 1000
      ? t.tool.milliseconds(String(tool.durationMs))
      : t.tool.seconds(
          (tool.durationMs / 1000).toLocaleString(locale, { maximumFractionDigits: 1 }),
        )
  return <>{tool.state === 'done' ? took : `${label} · ${took}`}</>
}

function ToolBody({ tool }: { tool: ToolView }) {
  const { t } = useTexts()
  const [whole, setWhole] = useState(false)
  const args = JSON.stringify(tool.arguments, null, 2)
  const output = tool.output
  const folded = output !== null && output.length > FOLD && !whole
  return (
    <div className="tool-body">
      <div className="tool-label">{t.tool.arguments}</div>
      <pre tabIndex={0}>{args}</pre>
      {output !== null && (
        <>
          <div className="tool-label">
            {t.tool.output}
            {output !== '' && <CopyButton text={output} label={t.copy} />}
          </div>
          <pre tabIndex={0} className={whole ? 'whole' : ''} data-testid="tool-output">
            {output === '' ? t.tool.noOutput : folded ? `${output.slice(0, FOLD)}…` : output}
          </pre>
          {output.length > FOLD && (
            <button type="button" className="button quiet" onClick={() => setWhole(!whole)}>
              {whole ? t.tool.showLess : t.tool.showAll(bytes(new Blob([output]).size))}
            </button>
          )}
        </>
      )}
    </div>
  )
}

/** The arguments in one line: the values alone where that says enough. */
function brief(args: JsonValue): string {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return JSON.stringify(args)
  const values = Object.values(args)
  if (values.length === 0) return ''
  const simple = values.every((value) => typeof value !== 'object' || value === null)
  const line = simple ? values.map(String).join(' · ') : JSON.stringify(args)
  return line.slice(0, 200).replace(/\s+/g, ' ')
}
