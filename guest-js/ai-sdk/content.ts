/**
 * Between messages of the AI SDK and content blocks of the agent.
 */

import type { FileUIPart, TextUIPart, UIMessage } from 'ai' with { 'resolution-mode': 'import' };
import type { ContentBlock } from '../bindings.js';
import { invalidInput } from '../error.js';

/**
 * The content of a user's message.
 *
 * # Errors
 * `INVALID_INPUT` for a file that is neither an image nor text, or is not in the message
 * itself: the agent fetches nothing.
 */
export function contentOf(message: UIMessage): ContentBlock[] {
  const content: ContentBlock[] = [];
  for (const part of message.parts) {
    if (part.type === 'text') content.push({ type: 'text', text: part.text });
    else if (part.type === 'file') content.push(blockOf(part));
  }
  return content;
}

/** The parts that show a user's content. */
export function partsOf(content: ContentBlock[]): (TextUIPart | FileUIPart)[] {
  return content.map((block) => {
    switch (block.type) {
      case 'text':
        return { type: 'text', text: block.text };
      case 'image': {
        // What the agent has stored always names its type.
        const { mediaType = 'image/*', data } = block;
        return { type: 'file', mediaType, url: `data:${mediaType};base64,${data}` };
      }
      case 'file':
        return {
          type: 'file',
          mediaType: 'text/plain',
          filename: block.name,
          url: `data:text/plain;charset=utf-8,${encodeURIComponent(block.text)}`,
        };
    }
  });
}

function blockOf(part: FileUIPart): ContentBlock {
  const name = part.filename ?? 'file';
  const comma = part.url.indexOf(',');
  if (!part.url.startsWith('data:') || comma < 0) {
    throw invalidInput(`"${name}" is not part of the message; attach it as a data URL, the agent fetches nothing`);
  }
  if (part.mediaType.startsWith('image/')) return { type: 'image', mediaType: part.mediaType, data: part.url };
  if (!isText(part.mediaType)) {
    throw invalidInput(`"${name}" (${part.mediaType}) cannot be sent; attach images (PNG, JPEG, GIF, WebP) or text files`);
  }
  const data = part.url.slice(comma + 1);
  const isBase64 = part.url.slice(0, comma).endsWith(';base64');
  try {
    return { type: 'file', name, text: isBase64 ? decodeBase64(data) : decodeURIComponent(data) };
  } catch (error) {
    throw invalidInput(`"${name}" cannot be read as text: ${String(error)}`);
  }
}

function isText(mediaType: string): boolean {
  return /^text\/|^application\/(json|xml|javascript|yaml|toml|x-[a-z]+)\b|\+(json|xml)$/.test(mediaType);
}

function decodeBase64(data: string): string {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}
