import type { Attachment } from './attachments'

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

/** What was written before a chat had its id is its own afterwards, with what was attached. */
export function moveDraft(from: string | null, to: string | null, text: string): void {
  saveDraft(to, text)
  // Another window may be writing a new chat of its own.
  if (loadDraft(from) === text) saveDraft(from, '')
  keepAttachments(from, [])
}

/** Unsent attachments by session: too big for the page's storage, so they live as long as the page. */
const attached = new Map<string, readonly Attachment[]>()

export function loadAttachments(sessionId: string | null): readonly Attachment[] {
  return attached.get(key(sessionId)) ?? []
}

export function keepAttachments(sessionId: string | null, attachments: readonly Attachment[]): void {
  if (attachments.length === 0) attached.delete(key(sessionId))
  else attached.set(key(sessionId), attachments)
}
