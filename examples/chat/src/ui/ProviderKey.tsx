import { useState } from 'react'
import { setProviderKey, type ProviderSettings } from '../backend'
import { useTexts } from '../i18n'
import { reloadCatalog } from '../state/catalog'
import { factsOf } from '../state/errors'

/** A provider's key: it goes in, never out. */
export function ProviderKey({ provider }: { provider: ProviderSettings }) {
  const { t } = useTexts()
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<{ good: boolean; text: string } | null>(null)
  const [asking, setAsking] = useState(false)

  const store = async (value: string) => {
    setBusy(true)
    setAsking(false)
    try {
      await setProviderKey(provider.id, value)
      setKey('')
      await reloadCatalog()
      setSaid({ good: true, text: value === '' ? t.settings.removed : t.settings.saved })
    } catch (thrown) {
      setSaid({ good: false, text: `${t.settings.failed} ${factsOf(thrown).message}` })
    } finally {
      setBusy(false)
    }
  }

  const state = provider.hasKey
    ? t.settings.keySet
    : provider.needsKey
      ? t.settings.keyMissing
      : t.settings.keyNotNeeded
  return (
    <div className="provider" data-testid="provider" data-provider={provider.id}>
      <div className="provider-head">
        <strong>{provider.displayName}</strong>
        {provider.endpoint && <small>{provider.endpoint}</small>}
        <span className={`badge ${provider.hasKey || !provider.needsKey ? 'ok' : ''}`}>{state}</span>
      </div>
      {provider.needsKey && (
        <form
          autoComplete="off"
          onSubmit={(event) => {
            event.preventDefault()
            if (key.trim() !== '') void store(key.trim())
          }}
        >
          <input
            className="field"
            type="password"
            value={key}
            autoComplete="new-password"
            spellCheck={false}
            placeholder={provider.hasKey ? t.settings.keyReplace : t.settings.keyPlaceholder}
            aria-label={t.settings.keyLabel(provider.displayName)}
            onChange={(event) => {
              setKey(event.target.value)
              setSaid(null)
            }}
          />
          <button type="submit" className="button" disabled={busy || key.trim() === ''}>
            {t.settings.save}
          </button>
          {provider.hasKey && (
            <button
              type="button"
              className="button quiet danger"
              disabled={busy}
              onBlur={() => setAsking(false)}
              onClick={() => (asking ? void store('') : setAsking(true))}
            >
              {asking ? t.settings.removeKeyAsk : t.settings.removeKey}
            </button>
          )}
        </form>
      )}
      {said && (
        <p className={said.good ? 'setting-ok' : 'setting-error'} role="status">
          {said.text}
        </p>
      )}
    </div>
  )
}
