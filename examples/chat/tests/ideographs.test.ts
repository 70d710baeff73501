import { expect, it } from 'vitest'
import { joinIdeographs, type MarkdownNode } from '../src/markdown/ideographs'

const joined = (value: string) => {
  const text: MarkdownNode = { type: 'text', value }
  joinIdeographs()({ type: 'root', children: [{ type: 'paragraph', children: [text] }] })
  return text.value
}

it('a line break between ideographs is no blank, and every other one stays', () => {
  expect(joined('第一句。\n第二句，\n第三句')).toBe('第一句。第二句，第三句')
  expect(joined('ひとつ\nふたつ')).toBe('ひとつふたつ')
  expect(joined('first\nsecond')).toBe('first\nsecond')
  expect(joined('中文\nEnglish\n中文')).toBe('中文\nEnglish\n中文')
})

it('code is left as it is', () => {
  const code: MarkdownNode = { type: 'code', value: '甲\n乙' }
  joinIdeographs()({ type: 'root', children: [code] })
  expect(code.value).toBe('甲\n乙')
})
