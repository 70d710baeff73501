import { Store } from './store'

/** A short message at the window's edge. */
export interface Toast {
  id: number
  text: string
  action?: { label: string; run(): void }
}

export const toasts = new Store<readonly Toast[]>([])

let count = 0

/** Shows a message for a while; answers how to take it away earlier. */
export function toast(text: string, action?: Toast['action'], milliseconds = 6000): () => void {
  const id = ++count
  const dismiss = () => toasts.set(toasts.get().filter((one) => one.id !== id))
  toasts.set([...toasts.get().slice(-2), action ? { id, text, action } : { id, text }])
  setTimeout(dismiss, milliseconds)
  return dismiss
}
