/** An error as the app shows it, whether it came by an event or was thrown. */
export interface ErrorFacts {
  code: string
  message: string
  retryable: boolean
  retryAfterMs?: number | null
}

/** The facts of anything that was thrown. */
export function factsOf(thrown: unknown): ErrorFacts {
  if (typeof thrown === 'object' && thrown !== null && 'code' in thrown && 'message' in thrown) {
    const { code, message } = thrown
    return {
      code: String(code),
      message: String(message),
      retryable: 'retryable' in thrown && thrown.retryable === true,
      ...('retryAfterMs' in thrown && typeof thrown.retryAfterMs === 'number'
        ? { retryAfterMs: thrown.retryAfterMs }
        : {}),
    }
  }
  // App commands refuse with a plain text.
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { code: 'UNKNOWN', message, retryable: false }
}
