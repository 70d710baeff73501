import { useEffect, useMemo, useRef, useState } from 'react'
import type { ModelEntry } from 'tauri-plugin-youyou-agent-api'
import { tokens } from '../format'
import { useTexts } from '../i18n'
import { catalog, modelById, providerName, reloadCatalog } from '../state/catalog'
import { prefer, preferences } from '../state/preferences'
import { useStore } from '../state/store'
import { Icon } from './icons'
import { Segments } from './Segments'
import { usePopover } from './usePopover'

interface Props {
  modelId: string | null
  onChange(modelId: string): void
}

/** The models by provider; a choice holds from the next message on. */
export function ModelPicker({ modelId, onChange }: Props) {
  const { t } = useTexts()
  const { models } = useStore(catalog)
  const { open, toggle, close, host } = usePopover()
  const model = modelById(models, modelId)
  return (
    <div className="popover-host" ref={host}>
      <button
        type="button"
        className="model-button"
        aria-haspopup="listbox"
        aria-expanded={open}
        aria-label={`${t.header.model}: ${model?.displayName ?? t.header.noModel}`}
        data-testid="model-picker"
        data-model={modelId ?? ''}
        onClick={() => {
          // A local server may have been started since.
          if (!open) void reloadCatalog()
          toggle()
        }}
      >
        <span>{model?.displayName ?? t.header.noModel}</span>
        <Icon name="down" />
      </button>
      {open && (
        <div className="popover left">
          <ModelList
            modelId={modelId}
            onChoose={(id) => {
              onChange(id)
              close()
              host.current?.querySelector('button')?.focus()
            }}
          />
          {model?.capabilities.reasoning && <Effort />}
        </div>
      )}
    </div>
  )
}

function ModelList({ modelId, onChoose }: { modelId: string | null; onChoose(id: string): void }) {
  const { t } = useTexts()
  const { models, settings } = useStore(catalog)
  const [filter, setFilter] = useState('')
  const [active, setActive] = useState(modelId)
  const list = useRef<HTMLDivElement>(null)
  const groups = useMemo(() => grouped(models, filter), [models, filter])
  const flat = groups.flatMap(([, rows]) => rows)
  const searchable = models.length > 8

  useEffect(() => {
    if (!searchable) list.current?.focus()
  }, [searchable])
  useEffect(() => {
    list.current?.querySelector('.active')?.scrollIntoView({ block: 'nearest' })
  }, [active])

  const onKeyDown = (event: React.KeyboardEvent) => {
    const at = flat.findIndex((model) => model.id === active)
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) {
      event.preventDefault()
      setActive(flat[(at + step + flat.length) % flat.length]?.id ?? null)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      const chosen = flat[at] ?? flat[0]
      if (chosen) onChoose(chosen.id)
    }
  }

  if (models.length === 0) return <p className="list-note">{t.header.noModels}</p>
  return (
    <div onKeyDown={onKeyDown}>
      {searchable && (
        <input
          className="field model-filter"
          value={filter}
          placeholder={t.header.filterModels}
          aria-label={t.header.filterModels}
          aria-controls="model-list"
          aria-activedescendant={active ? `model-${active}` : undefined}
          autoFocus
          onChange={(event) => setFilter(event.target.value)}
        />
      )}
      <div
        ref={list}
        id="model-list"
        role="listbox"
        tabIndex={searchable ? -1 : 0}
        aria-label={t.header.chooseModel}
        aria-activedescendant={active ? `model-${active}` : undefined}
      >
        {groups.map(([provider, rows]) => (
          <div key={provider} role="group" aria-label={providerName(settings, provider)}>
            <div className="model-group" aria-hidden="true">
              {providerName(settings, provider)}
            </div>
            {rows.map((model) => (
              <div
                key={model.id}
                id={`model-${model.id}`}
                role="option"
                aria-selected={model.id === modelId}
                className={`model-option ${model.id === active ? 'active' : ''}`}
                data-testid="model-option"
                data-model={model.id}
                onPointerMove={() => setActive(model.id)}
                onClick={() => onChoose(model.id)}
              >
                <Icon name="check" className={model.id === modelId ? '' : 'off'} />
                <span>
                  <span className="model-name">{model.displayName}</span>
                  <Facts model={model} />
                </span>
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  )
}

function Facts({ model }: { model: ModelEntry }) {
  const { t } = useTexts()
  const { vision, toolUse, reasoning } = model.capabilities
  const facts = [tokens(model.contextWindow)]
  if (toolUse) facts.push(t.header.tools)
  if (vision) facts.push(t.header.vision)
  if (reasoning) facts.push(t.header.reasoning)
  return <span className="model-facts">{facts.join(' · ')}</span>
}

function Effort() {
  const { t } = useTexts()
  const { effort } = useStore(preferences)
  const { auto, low, medium, high } = t.header.efforts
  return (
    <div className="effort">
      {t.header.effort}
      <Segments
        label={t.header.effort}
        value={effort}
        options={[
          ['auto', auto],
          ['low', low],
          ['medium', medium],
          ['high', high],
        ]}
        onChange={(value) => prefer({ effort: value })}
      />
    </div>
  )
}

function grouped(models: readonly ModelEntry[], filter: string): [string, ModelEntry[]][] {
  const wanted = filter.trim().toLowerCase()
  const groups = new Map<string, ModelEntry[]>()
  for (const model of models) {
    const text = `${model.displayName} ${model.id} ${model.providerId}`.toLowerCase()
    if (!text.includes(wanted)) continue
    groups.set(model.providerId, [...(groups.get(model.providerId) ?? []), model])
  }
  return [...groups]
}
