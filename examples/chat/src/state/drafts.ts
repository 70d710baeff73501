/**
 * Unsent text by session, kept in the page's own storage: neither a reload nor a look at
 * another chat loses it. The key of a chat that does not exist yet is `new`.
 */

const key = (sessionId: string | null) => `draft:${sessionId ?? 'new'}`

export function loadDraft(sessionId: string | null): string {
  try {
    return localStorage.getItem(key(sessionId)) ?? ''
  } catch {
    return ''
  }
}

export function saveDraft(sessionId: string | null, text: string): void {
  try {
    if (text === '') localStorage.removeItem(key(sessionId))
    else localStorage.setItem(key(sessionId), text)
  } catch {
    // Without storage the draft lives as long as the page.
  }
}
