import { useEffect, useRef, useState, type ReactNode } from 'react'
import { pickWorkspace, setWorkspace } from '../backend'
import { useTexts } from '../i18n'
import { catalog, reloadCatalog } from '../state/catalog'
import { factsOf } from '../state/errors'
import { prefer, preferences } from '../state/preferences'
import { useStore } from '../state/store'
import { Icon } from './icons'
import { shortcut } from './keyboard'
import { ProviderKey } from './ProviderKey'
import { Segments } from './Segments'

/** Providers, workspace, language, theme. Every change holds at once; there is nothing to save. */
export function SettingsDialog({ onClose }: { onClose(): void }) {
  const { t } = useTexts()
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    // Not the close button, which comes first: nothing is meant to be chosen yet.
    dialog.current?.focus()
    void reloadCatalog()
  }, [])
  return (
    <dialog
      ref={dialog}
      className="dialog"
      tabIndex={-1}
      aria-labelledby="settings-title"
      data-testid="settings-dialog"
      onClose={onClose}
      onClick={(event) => {
        // The backdrop belongs to the dialog element itself, its content to the frame.
        if (event.target === dialog.current) dialog.current.close()
      }}
    >
      <div className="dialog-frame">
        <div className="dialog-head">
          <h1 id="settings-title">{t.settings.title}</h1>
          <button
            type="button"
            className="icon-button"
            aria-label={t.close}
            onClick={() => dialog.current?.close()}
          >
            <Icon name="close" />
          </button>
        </div>
        <div className="dialog-body">
          <Look />
          <Providers />
          <Workspace />
          <Shortcuts />
        </div>
      </div>
    </dialog>
  )
}

function Look() {
  const { t } = useTexts()
  const { theme, language } = useStore(preferences)
  return (
    <section className="setting">
      <div className="setting-line">
        <h2>{t.settings.language}</h2>
        <Segments
          label={t.settings.language}
          value={language}
          options={[
            ['auto', t.settings.auto],
            ['en', 'English'],
            ['zh', '中文'],
          ]}
          onChange={(value) => prefer({ language: value })}
        />
      </div>
      <div className="setting-line">
        <h2>{t.settings.theme}</h2>
        <Segments
          label={t.settings.theme}
          value={theme}
          options={[
            ['auto', t.settings.auto],
            ['light', t.settings.light],
            ['dark', t.settings.dark],
          ]}
          onChange={(value) => prefer({ theme: value })}
        />
      </div>
    </section>
  )
}

function Providers() {
  const { t } = useTexts()
  const { settings, loaded } = useStore(catalog)
  return (
    <section className="setting">
      <h2>{t.settings.providers}</h2>
      <p className="setting-hint">{t.settings.keyHint}</p>
      {settings?.providers.map((provider) => <ProviderKey key={provider.id} provider={provider} />)}
      {loaded && !settings && (
        <p className="setting-error" role="alert">
          {t.settings.loadFailed}
        </p>
      )}
    </section>
  )
}

function Workspace() {
  const { t } = useTexts()
  const { settings } = useStore(catalog)
  const [error, setError] = useState<string | null>(null)
  const choose = async () => {
    setError(null)
    try {
      const path = await pickWorkspace()
      if (path === null) return
      await setWorkspace(path)
      await reloadCatalog()
    } catch (thrown) {
      setError(`${t.settings.failed} ${factsOf(thrown).message}`)
    }
  }
  const path = settings?.workspace ?? null
  return (
    <section className="setting">
      <h2>{t.settings.workspace}</h2>
      <p className="setting-hint">{path === null ? t.settings.workspaceNone : t.settings.workspaceHint}</p>
      <div className="setting-line">
        {path === null ? <span /> : <span className="path" title={path} data-testid="workspace-path">&lrm;{path}</span>}
        <button type="button" className="button" data-testid="pick-workspace" onClick={() => void choose()}>
          {t.settings.choose}
        </button>
      </div>
      {error && (
        <p className="setting-error" role="alert">
          {error}
        </p>
      )}
    </section>
  )
}

function Shortcuts() {
  const { t } = useTexts()
  const names = t.settings.shortcut
  return (
    <section className="setting">
      <h2>{t.settings.shortcuts}</h2>
      <dl className="shortcuts">
        <Line text={names.newSession}>{shortcut('N')}</Line>
        <Line text={names.newWindow}>{shortcut('Shift+N')}</Line>
        <Line text={names.search}>{shortcut('K')}</Line>
        <Line text={names.sidebar}>{shortcut('B')}</Line>
        <Line text={names.settings}>{shortcut(',')}</Line>
        <Line text={names.focus}>{shortcut('L')}</Line>
        <Line text={names.stop}>Esc</Line>
      </dl>
    </section>
  )
}

function Line({ text, children }: { text: string; children: ReactNode }) {
  return (
    <>
      <dt>{text}</dt>
      <dd>
        <kbd>{children}</kbd>
      </dd>
    </>
  )
}
