import { memo, useDeferredValue, useEffect, useMemo, useState } from 'react'
import { useTexts } from '../i18n'
import { CopyButton } from '../ui/CopyButton'
import { highlight, loadHighlighter } from './highlight'

interface Props {
  code: string
  language: string
}

/** A block of code with its language, a copy button and, once loaded, colours. */
export const CodeBlock = memo(function CodeBlock({ code, language }: Props) {
  const { t } = useTexts()
  const [loaded, setLoaded] = useState(false)
  useEffect(() => {
    let here = true
    void loadHighlighter().then(() => here && setLoaded(true))
    return () => {
      here = false
    }
  }, [])
  // While a block streams, colours may lag behind by a frame or two; the text never does.
  const coloured = useDeferredValue(code)
  const html = useMemo(
    () => (loaded ? highlight(coloured, language) : null),
    [loaded, coloured, language],
  )
  const rest = code.startsWith(coloured) ? code.slice(coloured.length) : null
  return (
    <div className="code" role="group" aria-label={t.thread.codeLabel(language)}>
      <div className="code-bar">
        <span className="code-language">{language || 'text'}</span>
        <CopyButton text={code} label={t.thread.copyCode} />
      </div>
      <pre tabIndex={0}>
        {html === null || rest === null ? (
          <code>{code}</code>
        ) : (
          <code>
            <span dangerouslySetInnerHTML={{ __html: html }} />
            {rest}
          </code>
        )}
      </pre>
    </div>
  )
})
