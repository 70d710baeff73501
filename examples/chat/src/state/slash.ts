import type { SkillInfo } from 'tauri-plugin-youyou-agent-api'

/**
 * What is being typed as a skill's name, or `null` where the text is no skill call: only
 * at the very start, up to the caret, before any white space. `//` is plain text.
 */
export function skillQuery(text: string, caret: number): string | null {
  const typed = text.slice(0, caret)
  const match = /^\/([^\s/\\.]*)$/u.exec(typed)
  return match?.[1] ?? null
}

/** The skills that fit, those whose name starts with the query first. */
export function matchingSkills(skills: readonly SkillInfo[], query: string): SkillInfo[] {
  const wanted = query.toLowerCase()
  const rank = (skill: SkillInfo): number => {
    if (skill.name.toLowerCase().startsWith(wanted)) return 0
    if (skill.displayName.toLowerCase().includes(wanted)) return 1
    return skill.name.toLowerCase().includes(wanted) ? 1 : 2
  }
  return skills
    .map((skill) => ({ skill, rank: rank(skill) }))
    .filter((entry) => entry.rank < 2)
    .sort((a, b) => a.rank - b.rank || a.skill.name.localeCompare(b.skill.name))
    .map((entry) => entry.skill)
}

/** The text with the skill's name completed, and where the caret goes. */
export function completeSkill(text: string, caret: number, name: string): [string, number] {
  const rest = text.slice(caret).replace(/^\S*/u, '')
  const head = `/${name}${rest.startsWith(' ') ? '' : ' '}`
  return [head + rest, rest.startsWith(' ') ? head.length + 1 : head.length]
}
