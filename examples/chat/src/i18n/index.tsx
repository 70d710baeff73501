import { createContext, useContext, type ReactNode } from 'react'
import { useStore } from '../state/store'
import { preferences } from '../state/preferences'
import { en, type Texts } from './en'
import { zh } from './zh'

/** The languages that the app speaks. */
export type Language = 'en' | 'zh'

const all: Record<Language, Texts> = { en, zh }

/** The language for a preference: the one named, or the first that fits the system. */
export function languageFor(preference: 'auto' | Language, system: readonly string[]): Language {
  if (preference !== 'auto') return preference
  return system[0]?.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

interface Spoken {
  t: Texts
  language: Language
  /** For `Intl`. */
  locale: string
}

const spoken = (language: Language): Spoken => ({
  t: all[language],
  language,
  locale: language === 'zh' ? 'zh-CN' : 'en',
})

const Context = createContext<Spoken>(spoken('en'))

/** Gives everything below it the chosen language, and the document its `lang`. */
export function LanguageProvider({ children }: { children: ReactNode }) {
  const { language: preference } = useStore(preferences)
  const language = languageFor(preference, navigator.languages)
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  return <Context value={spoken(language)}>{children}</Context>
}

/** The texts and the locale in use. */
export const useTexts = (): Spoken => useContext(Context)
