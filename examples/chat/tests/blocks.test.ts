import { describe, expect, it } from 'vitest'
import { cut, noBlocks } from '../src/markdown/blocks'

const documents = [
  '# Title\n\nSome *text* here.\n\n- one\n- two\n\n- three after a blank\n\n  with a paragraph\n\nEnd.',
  'A paragraph\nthat becomes a heading\n===\n\nnext\n\n> quote\nlazy line\n\n1. a\n2. b\n\n\n   c\n',
  '```rust\nfn main() {\n\n    println!("a");\n}\n```\n\nafter\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\ntail',
  'one\r\n\r\ntwo\r\n\r\n- a\r\n- b\r\n\r\nthree\r\n',
  '-\n\n- x\n\n***\n\n    indented\n\n    code\n\n中文段落。\n\n**粗体**\n\n~~~\nopen fence\n\nstill open',
]

describe('cutting Markdown into blocks', () => {
  it('gives the same blocks for a growing text as for the whole of it', () => {
    for (const document of documents) {
      let grown = noBlocks
      for (let end = 1; end <= document.length; end++) {
        const text = document.slice(0, end)
        grown = cut(text, grown)
        expect(grown.blocks, JSON.stringify(text)).toEqual(cut(text).blocks)
      }
    }
  })

  it('loses no character but the carriage returns', () => {
    for (const document of documents) {
      expect(cut(document).blocks.join('')).toBe(document.replace(/\r\n/g, '\n'))
    }
  })

  it('keeps finished blocks as they are while the last one grows', () => {
    const before = cut('one\n\ntwo\n\nthree\n\nfour')
    const after = cut('one\n\ntwo\n\nthree\n\nfour and more', before)
    expect(after.blocks.slice(0, 3)).toEqual(before.blocks.slice(0, 3))
    expect(after.blocks[3]).toBe('four and more')
  })

  it('keeps a text with link definitions whole, so that every link finds its target', () => {
    expect(cut('see [a]\n\n[a]: https://example.org\n\nmore').blocks).toHaveLength(1)
  })
})
