import { useTexts } from '../i18n'
import type { ThreadView } from '../state/threadModel'

/** What a turn is doing. */
export type TurnPhase = 'idle' | 'opening' | 'waiting' | 'writing' | 'tools' | 'stopping'

/** What the turn is doing, from what it has shown last. */
export function phaseOf(view: ThreadView, opening: boolean): TurnPhase {
  if (view.turn === null) return opening ? 'opening' : 'idle'
  if (view.turn.stopping) return 'stopping'
  const newest = view.turn.state?.parts.at(-1)
  if (newest?.type === 'tool') return newest.state === 'running' ? 'tools' : 'waiting'
  return newest?.type === 'text' || newest?.type === 'reasoning' ? 'writing' : 'waiting'
}

const STATES = {
  idle: 'idle',
  opening: 'running',
  waiting: 'running',
  writing: 'running',
  tools: 'running',
  stopping: 'stopping',
} as const

/** What the turn is doing, for eyes, screen readers and tests. */
export function TurnStatus({ phase }: { phase: TurnPhase }) {
  const { t } = useTexts()
  const texts: Record<TurnPhase, string> = {
    idle: '',
    opening: t.composer.opening,
    waiting: t.composer.waiting,
    writing: t.composer.writing,
    tools: t.composer.runningTools,
    stopping: t.composer.stopping,
  }
  return (
    <span
      className="turn-state"
      role="status"
      aria-live="polite"
      data-testid="turn-state"
      data-state={STATES[phase]}
    >
      {texts[phase]}
    </span>
  )
}
