import { useSyncExternalStore } from 'react'

/** One value that components can watch. */
export class Store<T> {
  #value: T
  #listeners = new Set<() => void>()

  constructor(value: T) {
    this.#value = value
  }

  readonly get = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Changes the value and tells the watchers. */
  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const listener of this.#listeners) listener()
  }

  /** Changes some fields and tells the watchers. */
  patch(fields: Partial<T>): void {
    this.set({ ...this.#value, ...fields })
  }
}

/** Watches a store from a component. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}
