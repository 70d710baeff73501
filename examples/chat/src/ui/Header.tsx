import { useTexts } from '../i18n'
import type { ThreadView } from '../state/threadModel'
import { ContextMeter } from './ContextMeter'
import { Icon } from './icons'
import { shortcut } from './keyboard'
import { ModelPicker } from './ModelPicker'

interface Props {
  title: string
  view: ThreadView
  modelId: string | null
  sidebar: boolean
  memory: boolean
  onModel(modelId: string): void
  onSidebar(): void
  onMemory(): void
  onSettings(): void
}

/** What the session is, which model answers, how full its context is. */
export function Header(props: Props) {
  const { t } = useTexts()
  return (
    <header className="header">
      {!props.sidebar && (
        <button
          type="button"
          className="icon-button"
          aria-label={t.sidebar.show}
          title={`${t.sidebar.show} (${shortcut('B')})`}
          onClick={props.onSidebar}
        >
          <Icon name="sidebar" />
        </button>
      )}
      <ModelPicker modelId={props.modelId} onChange={props.onModel} />
      {props.title ? (
        <h1 className="header-title" title={props.title}>
          {props.title}
        </h1>
      ) : (
        <span className="header-title" />
      )}
      <ContextMeter view={props.view} />
      <button
        type="button"
        className="icon-button"
        aria-label={t.header.memory}
        title={t.header.memory}
        aria-pressed={props.memory}
        data-testid="memory-button"
        onClick={props.onMemory}
      >
        <Icon name="memory" />
      </button>
      {!props.sidebar && (
        <button
          type="button"
          className="icon-button"
          aria-label={t.header.settings}
          title={t.header.settings}
          data-testid="settings-button"
          onClick={props.onSettings}
        >
          <Icon name="settings" />
        </button>
      )}
    </header>
  )
}
