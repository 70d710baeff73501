import { Lexer } from 'marked'

/** A Markdown text cut into its top-level blocks; joined they are the text again. */
export interface Blocks {
  text: string
  blocks: readonly string[]
}

export const noBlocks: Blocks = { text: '', blocks: [] }

// A definition may be used by any block, so such a text stays whole.
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m

function lex(text: string): string[] {
  if (DEFINITION.test(text)) return [text]
  const blocks: string[] = []
  for (const token of new Lexer({ gfm: true }).lex(text)) {
    // Blank lines belong to the block before them.
    if (token.type === 'space' && blocks.length > 0) blocks[blocks.length - 1] += token.raw
    else blocks.push(token.raw)
  }
  return blocks
}

/**
 * Cuts a growing text into blocks. When `text` continues what was cut before, only its
 * last two blocks are looked at again, so that a delta costs the same at any length and
 * finished blocks stay the same strings (their rendering is memoised by them).
 */
export function cut(text: string, before: Blocks = noBlocks): Blocks {
  if (text === before.text) return before
  const keep = before.blocks.length - 2
  if (keep <= 0 || !text.startsWith(before.text) || DEFINITION.test(text)) {
    return { text, blocks: lex(normal(text)) }
  }
  const kept = before.blocks.slice(0, keep)
  const start = kept.reduce((length, block) => length + block.length, 0)
  return { text, blocks: [...kept, ...lex(normal(text).slice(start))] }
}

// The lexer does the same to line ends; done here so that offsets stay true.
const normal = (text: string) => text.replace(/\r\n?/g, '\n')
