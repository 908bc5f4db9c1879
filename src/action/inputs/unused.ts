import { EXPORT_INPUTS } from '../export/wish.ts'
import type { Mode, RawInputs } from '../inputs.ts'
import { INPUT_NAMES, type InputName, inputSpec } from '../registry.ts'

/** Inputs without a default that every mode reads. */
const ALWAYS: readonly InputName[] = ['api-key', 'workspace-id', 'control-plane-url', 'github-token']

/** The same for the modes that do not read everything. */
const ALSO: Partial<Record<Mode, readonly InputName[]>> = {
  export: [...EXPORT_INPUTS, 'api-url', 'comment'],
  teardown: ['deployment-name', 'repo-url', 'environment', 'comment'],
  sweep: ['deployment-name'],
}

/** What to say about inputs that this mode has no use for; a workflow gives each of them on purpose. */
export function unusedWarnings(mode: Mode, raw: RawInputs): string[] {
  const also = ALSO[mode]
  if (also === undefined) return []
  const used = [...ALWAYS, ...also]
  const unused = INPUT_NAMES.filter((name) => raw[name] !== '' && inputSpec(name).default === '' && !used.includes(name))
  if (unused.length === 0) return []
  return [`mode is ${mode}: ${unused.join(', ')} ${unused.length === 1 ? 'is' : 'are'} not used.`]
}
