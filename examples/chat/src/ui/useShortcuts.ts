import { useEffect, useRef } from 'react'
import { composing, hasCommandKey } from './keyboard'
import { showSidebar } from '../state/preferences'

interface Actions {
  newSession(): void
  newWindow(): void
  sidebar(): void
  settings(): void
  /** `null` while there is nothing to stop. */
  stop: (() => void) | null
}

/** The keys that work anywhere in the window. */
export function useShortcuts(actions: Actions): void {
  const latest = useRef(actions)
  useEffect(() => {
    latest.current = actions
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (composing(event) || event.defaultPrevented) return
      const { newSession, newWindow, sidebar, settings, stop } = latest.current
      if (event.key === 'Escape' && stop && !document.querySelector('dialog[open]')) {
        event.preventDefault()
        stop()
        return
      }
      if (!hasCommandKey(event)) return
      if (event.shiftKey) {
        if (event.key.toLowerCase() !== 'n') return
        event.preventDefault()
        newWindow()
        return
      }
      const run = {
        n: newSession,
        b: sidebar,
        ',': settings,
        k: () => {
          showSidebar(true)
          requestAnimationFrame(() => document.getElementById('session-search')?.focus())
        },
        l: () => document.querySelector<HTMLElement>('[data-testid="composer-input"]')?.focus(),
      }[event.key.toLowerCase()]
      if (!run) return
      event.preventDefault()
      run()
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
}
