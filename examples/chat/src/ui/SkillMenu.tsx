import { useEffect } from 'react'
import type { SkillInfo } from 'tauri-plugin-youyou-agent-api'
import { useTexts } from '../i18n'

interface Props {
  skills: readonly SkillInfo[]
  active: SkillInfo
  onChoose(name: string): void
}

/** The skills that fit what is typed after the slash. The text field keeps the focus. */
export function SkillMenu({ skills, active, onChoose }: Props) {
  const { t } = useTexts()
  useEffect(() => {
    document.getElementById(`skill-${active.name}`)?.scrollIntoView({ block: 'nearest' })
  }, [active])
  return (
    <ul id="skill-menu" className="skill-menu" role="listbox" aria-label={t.composer.skills} data-testid="skill-menu">
      {skills.map((skill) => (
        <li
          key={skill.name}
          id={`skill-${skill.name}`}
          className={`skill-option ${skill === active ? 'active' : ''}`}
          role="option"
          aria-selected={skill === active}
          onPointerDown={(event) => {
            event.preventDefault()
            onChoose(skill.name)
          }}
        >
          <code>/{skill.name}</code>
          <strong>{skill.displayName}</strong>
          <span>{skill.description}</span>
        </li>
      ))}
    </ul>
  )
}
