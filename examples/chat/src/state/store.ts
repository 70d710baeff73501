import { useSyncExternalStore } from 'react'

/**
 * One value that components can watch.
 *
 * Changes are told once per frame: a burst of events costs one render, however many
 * events it holds. Hidden windows get no frames, so a timer stands in for them.
 */
export class Store<T> {
  #value: T
  #listeners = new Set<() => void>()
  #scheduled = false

  constructor(value: T) {
    this.#value = value
  }

  readonly get = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Changes the value and tells the watchers at once. */
  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    this.#tell()
  }

  /** Changes some fields and tells the watchers at once. */
  patch(fields: Partial<T>): void {
    this.set({ ...this.#value, ...fields })
  }

  /** Changes the value now and tells the watchers with the next frame. */
  setSoon(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    if (this.#scheduled) return
    this.#scheduled = true
    let done = false
    const tell = () => {
      if (done) return
      done = true
      this.#scheduled = false
      this.#tell()
    }
    requestAnimationFrame(tell)
    setTimeout(tell, 50)
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Watches a store from a component. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}
