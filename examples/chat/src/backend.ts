import { invoke } from '@tauri-apps/api/core'
import { openUrl } from '@tauri-apps/plugin-opener'

/**
 * The commands of this app's own backend (`src-tauri`); what belongs to the agent comes
 * from `tauri-plugin-youyou-agent-api`.
 */

/** A provider as the settings show it. */
export interface ProviderSettings {
  id: string
  displayName: string
  /** Whether a key is stored. The key itself never comes back. */
  hasKey: boolean
  needsKey: boolean
  endpoint?: string | null
}

/** What `get_settings` answers. */
export interface Settings {
  providers: ProviderSettings[]
  /** The folder that tools are confined to. */
  workspace: string | null
  /** Whether the offline demo model is offered. */
  demo: boolean
}

/** A memory as the panel shows it. */
export interface MemoryEntry {
  id: string
  content: string
  tags: string[]
  /** Milliseconds since the Unix epoch. */
  updatedAt: number
}

export const getSettings = () => invoke<Settings>('get_settings')

/** Stores a key; an empty one removes it. */
export const setProviderKey = (providerId: string, key: string) =>
  invoke<void>('set_provider_key', { providerId, key })

export const setWorkspace = (path: string) => invoke<void>('set_workspace', { path })

/** Asks for a folder by the system's dialog; `null` if the user chose none. */
export const pickWorkspace = () => invoke<string | null>('pick_workspace')

export const listMemories = () => invoke<MemoryEntry[]>('list_memories')

export const deleteMemory = (id: string) => invoke<void>('delete_memory', { id })

/** Opens another window of the app: it shows the same agent, live. */
export const openWindow = () => invoke<void>('open_window', {})

/** Opens a web or mail address with the system's own program. */
export const openExternal = (url: string) => openUrl(url)
