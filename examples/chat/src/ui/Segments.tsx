interface Props<T extends string> {
  label: string
  value: T
  options: readonly (readonly [T, string])[]
  onChange(value: T): void
}

/** A choice of a few, as a radio group: arrow keys move, one tab stop. */
export function Segments<T extends string>({ label, value, options, onChange }: Props<T>) {
  const move = (event: React.KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const at = options.findIndex(([option]) => option === value)
    const next = options[(at + step + options.length) % options.length]
    if (!next) return
    onChange(next[0])
    const buttons = event.currentTarget.querySelectorAll('button')
    buttons[options.indexOf(next)]?.focus()
  }
  return (
    <div className="segments" role="radiogroup" aria-label={label} onKeyDown={move}>
      {options.map(([option, text]) => (
        <button
          key={option}
          type="button"
          role="radio"
          aria-checked={option === value}
          tabIndex={option === value ? 0 : -1}
          data-value={option}
          onClick={() => onChange(option)}
        >
          {text}
        </button>
      ))}
    </div>
  )
}
