import { listModels, listSkills, type ModelEntry, type SkillInfo } from 'tauri-plugin-youyou-agent-api'
import { getSettings, type Settings } from '../backend'
import { preferences } from './preferences'
import { Store } from './store'

/** What the agent and the app offer; read again when a key changed or the window is looked at. */
export interface Catalog {
  models: readonly ModelEntry[]
  skills: readonly SkillInfo[]
  settings: Settings | null
  loaded: boolean
}

export const catalog = new Store<Catalog>({ models: [], skills: [], settings: null, loaded: false })

/** Reads everything again; what cannot be read stays as it was. */
export async function reloadCatalog(): Promise<void> {
  const [models, skills, settings] = await Promise.allSettled([
    listModels(),
    listSkills(),
    getSettings(),
  ])
  const now = catalog.get()
  catalog.set({
    models: models.status === 'fulfilled' ? models.value : now.models,
    skills: skills.status === 'fulfilled' ? skills.value : now.skills,
    settings: settings.status === 'fulfilled' ? settings.value : now.settings,
    loaded: true,
  })
}

/** The provider id of the scripted model that works without any key. */
export const DEMO = 'demo'

/** The model for a new chat: the one chosen last, else a real one, else the demo. */
export function preferredModel(models: readonly ModelEntry[]): string | null {
  const chosen = preferences.get().modelId
  if (models.some((model) => model.id === chosen)) return chosen
  return (models.find((model) => model.providerId !== DEMO) ?? models[0])?.id ?? null
}

export function modelById(models: readonly ModelEntry[], id: string | null): ModelEntry | null {
  return models.find((model) => model.id === id) ?? null
}

/** A provider's name for people. */
export function providerName(settings: Settings | null, id: string): string {
  return settings?.providers.find((provider) => provider.id === id)?.displayName ?? id
}
