import type { ExportWish } from '../../../src/action/export/wish.ts'
import type { RawInputs } from '../../../src/action/inputs.ts'
import { INPUT_NAMES, inputSpec } from '../../../src/action/registry.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { DEPLOYMENT_ID } from './answers.ts'

/** No input is set. */
export const EMPTY_INPUTS = Object.fromEntries(INPUT_NAMES.map((name) => [name, ''])) as RawInputs

/** What a runner gives to a step that sets its key: the defaults of action.yml for the rest, and no token. */
export const DEFAULT_INPUTS: RawInputs = {
  ...(Object.fromEntries(INPUT_NAMES.map((name) => [name, inputSpec(name).default])) as RawInputs),
  'github-token': '',
  'api-key': 'key-of-the-test',
}

/** An export of the last day, to a destination by its id. */
export const EXPORT_INPUTS = {
  'workspace-id': DEPLOYMENT_ID,
  'export-project-id': DEPLOYMENT_ID,
  'export-destination-id': DEPLOYMENT_ID,
  'export-start': '-24h',
  'export-end': 'now',
} as const satisfies Partial<RawInputs>

/** What `EXPORT_INPUTS` ask for. */
export const ASKED_EXPORT: ExportWish = {
  apiUrl: 'https://api.smith.langchain.com',
  projectId: DEPLOYMENT_ID,
  destination: { id: DEPLOYMENT_ID },
  start: { beforeMs: 86_400_000 },
  end: { beforeMs: 0 },
  wait: true,
  timeoutMs: 72 * 3_600_000,
}

/** The words that inputs are refused with. */
export function refusal(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof ActionFailure && error.code === 'E_INPUT') return error.message
    throw error
  }
  throw new Error('the inputs were accepted')
}
