import { sessionHistory, type ContentBlock } from 'tauri-plugin-youyou-agent-api'

/**
 * Histories are read without the bytes of their images, so that a long one opens fast.
 * The bytes of a message are read when it comes into view.
 */
const loading = new Map<string, Promise<ContentBlock[]>>()

/** Messages whose images are kept; beyond that the oldest are read again when needed. */
const KEPT = 24

/** The content of a stored user message with its images. */
export function contentWithImages(sessionId: string, index: number): Promise<ContentBlock[]> {
  const key = `${sessionId}:${index}`
  const known = loading.get(key)
  if (known) return known
  const content = read(sessionId, index)
  loading.set(key, content)
  content.catch(() => loading.delete(key))
  const oldest = loading.size > KEPT ? loading.keys().next().value : undefined
  if (oldest !== undefined) loading.delete(oldest)
  return content
}

async function read(sessionId: string, index: number): Promise<ContentBlock[]> {
  const page = await sessionHistory(sessionId, {
    from: index,
    limit: 1,
    withImages: true,
  })
  const event = page.items.find((one) => one.index === index)
  return event?.type === 'userMessage' ? event.content : []
}
