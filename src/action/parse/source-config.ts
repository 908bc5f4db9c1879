import { parse } from 'yaml'
import { type SourceConfigInput, sourceConfigInputSchema } from '../../contract/deployment.ts'
import type { Parsed } from './parsed.ts'

/** Fields of `source_config` that have an input of their own. */
const OWN_INPUTS: Readonly<Record<string, string>> = {
  repo_url: 'repo-url',
  integration_id: 'integration-id',
  deployment_type: 'deployment-type',
  build_on_push: 'build-on-push',
}

const FIELDS = Object.keys(sourceConfigInputSchema.shape).filter((field) => !Object.hasOwn(OWN_INPUTS, field))

export const SOURCE_CONFIG_RULE = `a YAML or JSON object with the fields ${FIELDS.join(', ')}`

/** Reads the input `source-config`. Problems name fields, never values: a container's environment may be among them. */
export function parseSourceConfig(text: string): Parsed<SourceConfigInput> {
  let object: unknown
  try {
    object = parse(text, { maxAliasCount: 0, logLevel: 'error' })
  } catch (error) {
    const place = /at line \d+, column \d+/.exec(error instanceof Error ? error.message : '')
    return { problem: place === null ? 'is not readable as YAML' : `is not readable as YAML ${place[0]}` }
  }
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return { problem: 'is not an object' }
  for (const [field, input] of Object.entries(OWN_INPUTS)) {
    if (Object.hasOwn(object, field)) return { problem: `has the field ${field}`, fix: `take it out and use the input ${input}` }
  }
  const result = sourceConfigInputSchema.safeParse(object)
  if (result.success) return { value: result.data }
  const problems = result.error.issues.map((issue) =>
    issue.code === 'unrecognized_keys'
      ? `has unknown fields (${issue.keys.map((key) => key.slice(0, 60)).join(', ')})`
      : `has a bad ${issue.path.join('.')} (${issue.message})`,
  )
  return { problem: problems.join(', ') }
}
