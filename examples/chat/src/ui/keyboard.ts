/**
 * Whether a key press belongs to an input method. WebKit ends the composition before it
 * tells the Enter that confirmed it, so `isComposing` alone is not enough there; such a
 * press has key code 229.
 */
export function composing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229
}

/** ⌘ on a Mac, Ctrl elsewhere: the key of the app's shortcuts. */
export const onMac = /Mac|iPhone|iPad/.test(navigator.userAgent)

export const hasCommandKey = (event: KeyboardEvent): boolean =>
  (onMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey

/** How a shortcut is written on this system. */
export const shortcut = (key: string): string => (onMac ? `⌘${key}` : `Ctrl+${key}`)
