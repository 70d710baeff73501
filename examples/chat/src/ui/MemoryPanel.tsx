import { useEffect, useState } from 'react'
import { deleteMemory, listMemories, type MemoryEntry } from '../backend'
import { useTexts } from '../i18n'
import { factsOf } from '../state/errors'
import { toast } from '../state/toasts'
import { Icon } from './icons'

/** What is remembered across sessions, and a way to forget it. */
export function MemoryPanel({ onClose }: { onClose(): void }) {
  const { t, locale } = useTexts()
  const [memories, setMemories] = useState<MemoryEntry[] | null>(null)
  const [error, setError] = useState<string | null>(null)

  useEffect(() => {
    let here = true
    listMemories().then(
      (all) => here && setMemories(all),
      (thrown: unknown) => here && setError(factsOf(thrown).message),
    )
    return () => {
      here = false
    }
  }, [])

  const forget = (memory: MemoryEntry) => {
    const before = memories
    setMemories(memories?.filter((one) => one !== memory) ?? null)
    deleteMemory(memory.id).then(
      () => toast(t.memory.forgotten),
      (thrown: unknown) => {
        setMemories(before)
        toast(factsOf(thrown).message)
      },
    )
  }

  return (
    <aside className="panel" aria-label={t.memory.title} data-testid="memory-panel">
      <div className="panel-head">
        <h2>{t.memory.title}</h2>
        <button type="button" className="icon-button" aria-label={t.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <p className="panel-hint">{t.memory.hint}</p>
      {error && (
        <p className="panel-hint" role="alert">
          {t.memory.failed} {error}
        </p>
      )}
      {memories?.length === 0 && <p className="panel-hint">{t.memory.empty}</p>}
      <ul className="memories">
        {memories?.map((memory) => (
          <li key={memory.id} className="memory" data-testid="memory-item">
            {memory.content}
            <div className="memory-facts">
              <span>{t.memory.updated(new Date(memory.updatedAt).toLocaleDateString(locale))}</span>
              {memory.tags.map((tag) => (
                <span key={tag} className="tag">
                  #{tag}
                </span>
              ))}
            </div>
            <button
              type="button"
              className="icon-button small"
              aria-label={t.memory.remove}
              title={t.memory.remove}
              onClick={() => forget(memory)}
            >
              <Icon name="trash" />
            </button>
          </li>
        ))}
      </ul>
    </aside>
  )
}
