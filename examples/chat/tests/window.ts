/** The few things of a browser window that the state needs; enough to test it without one. */

const kept = new Map<string, string>()

Object.assign(globalThis, {
  matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
  requestAnimationFrame: (run: () => void) => setTimeout(run, 0),
  localStorage: {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  },
})
