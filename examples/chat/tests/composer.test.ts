import { describe, expect, it } from 'vitest'
import type { SkillInfo } from 'tauri-plugin-youyou-agent-api'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import { languageFor } from '../src/i18n'
import { decodeText, imageType, readAttachment } from '../src/state/attachments'
import { completeSkill, matchingSkills, skillQuery } from '../src/state/slash'
import { bytes, periodOf, tokens } from '../src/format'

describe('skills in the composer', () => {
  it('are looked for only at the very start, up to the caret', () => {
    expect(skillQuery('/', 1)).toBe('')
    expect(skillQuery('/sum', 4)).toBe('sum')
    expect(skillQuery('/sum', 2)).toBe('s')
    expect(skillQuery('/总结', 3)).toBe('总结')
    for (const plain of ['', ' /sum', 'a /sum', '//sum', '/a/b', '/a.b', '/a\\b', '/sum up', '／sum']) {
      expect(skillQuery(plain, plain.length), plain).toBeNull()
    }
  })

  it('come with those first whose name starts with what was typed', () => {
    const skill = (name: string, displayName: string): SkillInfo => ({
      name,
      displayName,
      description: '',
      requiredTools: [],
      allowImplicitInvocation: false,
    })
    const all = [skill('explain', 'Explain'), skill('re-explain', 'Again'), skill('commit', 'Commit')]
    expect(matchingSkills(all, 'EXP').map((one) => one.name)).toEqual(['explain', 're-explain'])
    expect(matchingSkills(all, '').map((one) => one.name)).toEqual(['commit', 'explain', 're-explain'])
    expect(matchingSkills(all, 'zzz')).toEqual([])
  })

  it('are completed without touching the rest', () => {
    expect(completeSkill('/su', 3, 'summarize')).toEqual(['/summarize ', 11])
    expect(completeSkill('/su this', 3, 'summarize')).toEqual(['/summarize this', 11])
  })
})

describe('attachments', () => {
  it('are told by their bytes, not by their names', async () => {
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    expect(imageType(png)).toBe('image/png')
    expect(imageType(new TextEncoder().encode('GIF89a'))).toBe('image/gif')
    expect(imageType(new TextEncoder().encode('RIFF____WEBP'))).toBe('image/webp')
    expect(imageType(new TextEncoder().encode('RIFF____WAVE'))).toBeNull()
  })

  it('are text only where every byte is', () => {
    expect(decodeText(new TextEncoder().encode('héllo 你好'))).toBe('héllo 你好')
    expect(decodeText(new Uint8Array([0xff, 0xfe, 0x41]))).toBeNull()
    expect(decodeText(new Uint8Array([0x41, 0x00, 0x42]))).toBeNull()
  })

  it('are refused with their name and the reason', async () => {
    const pdf = new File([new Uint8Array([0x25, 0x50, 0x44, 0x46, 0x00])], 'a.pdf')
    expect(await readAttachment(pdf, en)).toBe(en.composer.notSupported('a.pdf'))
    const big = new File([new Uint8Array(21 * 1024 * 1024)], 'big.png')
    expect(await readAttachment(big, en)).toBe(en.composer.tooLarge('big.png', '20 MB'))
    const long = new File(['x'.repeat(2 * 1024 * 1024)], 'long.txt')
    expect(await readAttachment(long, zh)).toBe(zh.composer.tooLarge('long.txt', '1 MB'))
  })

  it('become a file block with the whole text', async () => {
    const read = await readAttachment(new File(['fn main() {}'], 'main.rs'), en)
    expect(read).toMatchObject({ block: { type: 'file', name: 'main.rs', text: 'fn main() {}' } })
  })
})

describe('figures', () => {
  it('are short', () => {
    expect([950, 1_000, 1_250, 128_000, 999_900, 1_000_000].map(tokens)).toEqual([
      '950', '1k', '1.3k', '128k', '1M', '1M',
    ])
    expect([12, 1_536, 20 * 1024 * 1024].map(bytes)).toEqual(['12 B', '1.5 KB', '20 MB'])
  })

  it('are put under the day they belong to, by the calendar', () => {
    const now = new Date(2026, 2, 15, 0, 30).getTime()
    const minute = 60_000
    expect(periodOf(now - 10 * minute, now)).toBe('today')
    expect(periodOf(now - 40 * minute, now)).toBe('yesterday')
    expect(periodOf(new Date(2026, 2, 13).getTime(), now)).toBe('week')
    expect(periodOf(new Date(2026, 1, 20).getTime(), now)).toBe('month')
    expect(periodOf(new Date(2025, 11, 31).getTime(), now)).toEqual({ year: 2025, month: 11 })
  })
})

describe('languages', () => {
  it('follow the system unless one is chosen', () => {
    expect(languageFor('auto', ['zh-Hans-CN', 'en'])).toBe('zh')
    expect(languageFor('auto', ['de', 'zh'])).toBe('en')
    expect(languageFor('en', ['zh'])).toBe('en')
  })

  it('advise on the same errors', () => {
    expect(Object.keys(zh.advice)).toEqual(Object.keys(en.advice))
  })
})
