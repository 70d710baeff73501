import { useEffect, useRef, useState, type RefObject } from 'react'

interface Popover {
  open: boolean
  toggle(): void
  close(): void
  /** The element that holds the button and the popover. */
  host: RefObject<HTMLDivElement | null>
}

/** A popover that closes by Esc (giving the focus back), a click elsewhere or a lost focus. */
export function usePopover(): Popover {
  const [open, setOpen] = useState(false)
  const host = useRef<HTMLDivElement | null>(null)
  useEffect(() => {
    if (!open) return
    const onPress = (event: PointerEvent) => {
      if (!host.current?.contains(event.target as Node)) setOpen(false)
    }
    const onFocus = (event: FocusEvent) => {
      if (event.target instanceof Node && !host.current?.contains(event.target)) setOpen(false)
    }
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      event.preventDefault()
      event.stopPropagation()
      setOpen(false)
      host.current?.querySelector('button')?.focus()
    }
    document.addEventListener('pointerdown', onPress)
    document.addEventListener('focusin', onFocus)
    document.addEventListener('keydown', onKey, true)
    return () => {
      document.removeEventListener('pointerdown', onPress)
      document.removeEventListener('focusin', onFocus)
      document.removeEventListener('keydown', onKey, true)
    }
  }, [open])
  return { open, toggle: () => setOpen((was) => !was), close: () => setOpen(false), host }
}
