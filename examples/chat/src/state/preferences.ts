import { Store } from './store'

/** What the user chose for this window; kept in the page's own storage. */
export interface Preferences {
  theme: 'auto' | 'light' | 'dark'
  language: 'auto' | 'en' | 'zh'
  sidebar: boolean
  /** The model for new chats; empty means the app's default. */
  modelId: string
  effort: 'auto' | 'low' | 'medium' | 'high'
}

const KEY = 'preferences'

const initial: Preferences = {
  theme: 'auto',
  language: 'auto',
  sidebar: true,
  modelId: '',
  effort: 'auto',
}

function load(): Preferences {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Preferences>
    return { ...initial, ...stored }
  } catch {
    return initial
  }
}

/** The preferences in use. */
export const preferences = new Store<Preferences>(load())

/** Changes preferences and keeps them. */
export function prefer(fields: Partial<Preferences>): void {
  preferences.patch(fields)
  try {
    // A glance at the sidebar of a narrow window is no preference.
    const kept = isNarrow() ? { ...preferences.get(), sidebar: load().sidebar } : preferences.get()
    localStorage.setItem(KEY, JSON.stringify(kept))
  } catch {
    // A full or forbidden storage costs the choice after a restart, nothing else.
  }
}

/** Applies the theme to the document, now and whenever it changes. */
export function applyTheme(): void {
  const apply = () => {
    const { theme } = preferences.get()
    if (theme === 'auto') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme
  }
  apply()
  preferences.subscribe(apply)
}

const narrow = matchMedia('(max-width: 760px)')

/** Whether the sidebar lies over the thread instead of beside it. */
export const isNarrow = (): boolean => narrow.matches

/** Shows or hides the sidebar; on a narrow window that is a glance, not a preference. */
export function showSidebar(sidebar: boolean): void {
  if (isNarrow()) preferences.patch({ sidebar })
  else prefer({ sidebar })
}

/** A window that is or becomes narrow starts without the sidebar; a wide one as preferred. */
export function watchWidth(): void {
  const apply = () => preferences.patch({ sidebar: !isNarrow() && load().sidebar })
  apply()
  narrow.addEventListener('change', apply)
}
