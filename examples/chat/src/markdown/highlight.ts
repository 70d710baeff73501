import type { HLJSApi, LanguageFn } from 'highlight.js'

let ready: HLJSApi | null = null
let loading: Promise<HLJSApi> | null = null

/** Loads the highlighter once; code is shown plain until it is there. */
export function loadHighlighter(): Promise<HLJSApi> {
  loading ??= Promise.all([import('highlight.js/lib/core'), import('./languages')]).then(
    ([core, { languages }]) => {
      for (const [name, language] of Object.entries<LanguageFn>(languages)) {
        core.default.registerLanguage(name, language)
      }
      ready = core.default
      return ready
    },
  )
  return loading
}

/** Above this a block is shown plain: colour is not worth a stutter. */
const LIMIT = 60_000

/**
 * The code as highlighted HTML, or `null` where it stays plain. The highlighter escapes
 * the code, so the result holds no markup but its own spans.
 */
export function highlight(code: string, language: string): string | null {
  if (!ready || !language || code.length > LIMIT || !ready.getLanguage(language)) return null
  return ready.highlight(code, { language, ignoreIllegals: true }).value
}
