import { useState } from 'react'
import type { Usage } from 'tauri-plugin-youyou-agent-api'
import { tokens } from '../format'
import { useTexts } from '../i18n'
import { chat } from '../state/chat'
import { factsOf } from '../state/errors'
import type { ThreadView } from '../state/threadModel'
import { toast } from '../state/toasts'
import { usePopover } from './usePopover'

const RADIUS = 7.5
const LENGTH = 2 * Math.PI * RADIUS

/** How full the model's context is, and what was spent. */
export function ContextMeter({ view }: { view: ThreadView }) {
  const { t } = useTexts()
  const { open, toggle, host } = usePopover()
  // Here, not in the panel: that is gone while the popover is closed.
  const [running, setRunning] = useState<AbortController | null>(null)
  const { contextTokens, contextWindow } = view
  if (contextTokens === null || !contextWindow) return null
  const compact = () => {
    const stop = new AbortController()
    setRunning(stop)
    chat
      .compact(stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) toast(factsOf(error).message)
      })
      .finally(() => setRunning(null))
  }
  const fill = Math.min(1, contextTokens / contextWindow)
  const percent = Math.round(fill * 100)
  return (
    <div className="popover-host" ref={host}>
      <button
        type="button"
        className="icon-button meter-button"
        aria-label={t.header.contextFill(percent)}
        title={t.header.contextFill(percent)}
        aria-expanded={open}
        data-testid="context-meter"
        data-percent={percent}
        onClick={toggle}
      >
        <svg className={`meter-ring ${fill > 0.75 ? 'high' : ''}`} viewBox="0 0 18 18" aria-hidden="true">
          <circle cx="9" cy="9" r={RADIUS} />
          <circle
            className="fill"
            cx="9"
            cy="9"
            r={RADIUS}
            strokeDasharray={LENGTH}
            strokeDashoffset={LENGTH * (1 - fill)}
          />
        </svg>
        {percent}%
      </button>
      {open && (
        <div className="popover right">
          <MeterPanel
            view={view}
            used={contextTokens}
            window={contextWindow}
            compacting={running !== null}
            onCompact={compact}
            onStop={() => running?.abort()}
          />
        </div>
      )}
    </div>
  )
}

interface PanelProps {
  view: ThreadView
  used: number
  window: number
  compacting: boolean
  onCompact(): void
  onStop(): void
}

function MeterPanel({ view, used, window, compacting, onCompact, onStop }: PanelProps) {
  const { t } = useTexts()
  return (
    <div className="meter-panel">
      <dl>
        <dt>{t.header.context}</dt>
        <dd>{t.header.contextDetail(tokens(used), tokens(window))}</dd>
        <UsageLine label={t.header.usageTurn} usage={view.usage} />
        <UsageLine label={t.header.usageSession} usage={view.sessionUsage} />
      </dl>
      <p>{t.header.compactHint}</p>
      <button
        type="button"
        className="button"
        disabled={view.turn !== null}
        data-testid="compact-button"
        onClick={compacting ? onStop : onCompact}
      >
        {compacting && <span className="spinner" />}
        {compacting ? t.header.compactStop : t.header.compactNow}
      </button>
    </div>
  )
}

function UsageLine({ label, usage }: { label: string; usage: Usage | null }) {
  const { t } = useTexts()
  if (usage?.inputTokens == null && usage?.outputTokens == null) return null
  const cached = usage.cachedInputTokens ?? 0
  return (
    <>
      <dt>{label}</dt>
      <dd>
        {t.header.tokensInOut(tokens(usage.inputTokens ?? 0), tokens(usage.outputTokens ?? 0))}
        {cached > 0 && <div className="model-facts">{t.header.cached(tokens(cached))}</div>}
      </dd>
    </>
  )
}
