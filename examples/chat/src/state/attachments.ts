import type { ContentBlock } from 'tauri-plugin-youyou-agent-api'
import type { Texts } from '../i18n/en'
import { bytes } from '../format'

/** A file that will go with the next message. */
export interface Attachment {
  id: string
  name: string
  size: number
  block: ContentBlock
  /** An object URL for images; revoked when the attachment goes. */
  preview: string | null
}

/** The limits that the agent enforces too; told here before anything is sent. */
export const IMAGE_LIMIT = 20 * 1024 * 1024
export const TEXT_LIMIT = 1024 * 1024
export const COUNT_LIMIT = 20

export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

/** The image type that the first bytes tell; a name or declared type may lie. */
export function imageType(head: Uint8Array): ImageType | null {
  const starts = (...expected: number[]) => expected.every((byte, at) => head[at] === byte)
  if (starts(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return 'image/png'
  if (starts(0xff, 0xd8, 0xff)) return 'image/jpeg'
  if (starts(0x47, 0x49, 0x46, 0x38)) return 'image/gif'
  const webp = [0x57, 0x45, 0x42, 0x50].every((byte, at) => head[at + 8] === byte)
  return starts(0x52, 0x49, 0x46, 0x46) && webp ? 'image/webp' : null
}

/** The text of a file, or `null` if its bytes are no text. */
export function decodeText(data: Uint8Array): string | null {
  if (data.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(data)
  } catch {
    return null
  }
}

/** Reads a file, or says for the user why it cannot go along. */
export async function readAttachment(file: File, t: Texts): Promise<Attachment | string> {
  const name = file.name || t.thread.image
  if (file.size > IMAGE_LIMIT) return t.composer.tooLarge(name, bytes(IMAGE_LIMIT))
  let data: Uint8Array
  try {
    data = new Uint8Array(await file.arrayBuffer())
  } catch {
    return t.composer.unreadable(name)
  }
  const id = crypto.randomUUID()
  const mediaType = imageType(data)
  if (mediaType) {
    const block: ContentBlock = { type: 'image', mediaType, data: await base64(file) }
    const preview = URL.createObjectURL(new Blob([data.slice()], { type: mediaType }))
    return { id, name, size: file.size, block, preview }
  }
  const text = decodeText(data)
  if (text === null) return t.composer.notSupported(name)
  if (file.size > TEXT_LIMIT) return t.composer.tooLarge(name, bytes(TEXT_LIMIT))
  return { id, name, size: file.size, block: { type: 'file', name, text }, preview: null }
}

/** The browser's own encoder: quick, and it does not block the page as a loop would. */
function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => {
      const url = String(reader.result)
      resolve(url.slice(url.indexOf(',') + 1))
    }
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}
