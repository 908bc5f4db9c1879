import { z } from 'zod'

/** The graph configuration file that is used when nobody names one. */
export const DEFAULT_CONFIG_PATH = 'langgraph.json'

export const CONFIG_PATH_RULE = "a relative path to a JSON file inside the repository, with '/' between folders and without '..'"

/** True for a path that stays inside the repository, whatever the repository holds (links are the reader's duty). */
export function isValidConfigPath(path: string): boolean {
  if (path.length > 1024 || /[\x00-\x1f\x7f\\]/.test(path)) return false
  if (path.startsWith('-') || !path.endsWith('.json')) return false
  return path.split('/').every((part, index) => part !== '..' && part !== '' && (part !== '.' || index === 0))
}

export const graphConfigPathSchema = z
  .string()
  .refine(isValidConfigPath, `graph_config_path should be ${CONFIG_PATH_RULE}`)
