import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'

const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String)

const manifestSchema = z.looseObject({
  name: z.string(),
  inputs: z.record(z.string(), z.looseObject({ default: scalar.nullish() }).nullable()).nullish(),
  outputs: z.record(z.string(), z.unknown()).nullish(),
  runs: z.looseObject({ using: z.string(), main: z.string(), post: z.string().optional(), 'post-if': z.string().optional() }),
})

/** What the runner takes from an action.yml: the inputs with their defaults as written, and the scripts as absolute paths. */
export type ActionManifest = {
  name: string
  using: string
  main: string
  post: string | null
  inputs: Readonly<Record<string, string>>
  outputs: readonly string[]
}

export async function readActionManifest(folder: string): Promise<ActionManifest> {
  const { name, inputs, outputs, runs } = manifestSchema.parse(parse(await readFile(resolve(folder, 'action.yml'), 'utf8')))
  const postCondition = runs['post-if']
  if (postCondition !== undefined && !/^(\$\{\{\s*)?always\(\)(\s*\}\})?$/.test(postCondition)) {
    throw new Error(`the runner double knows only 'always()' as post-if, not '${postCondition}'`)
  }
  return {
    name,
    using: runs.using,
    main: resolve(folder, runs.main),
    post: runs.post === undefined ? null : resolve(folder, runs.post),
    inputs: Object.fromEntries(Object.entries(inputs ?? {}).map(([input, value]) => [input, value?.default ?? ''])),
    outputs: Object.keys(outputs ?? {}),
  }
}

export type Contexts = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Evaluates the expressions that action.yml may use in a default: `${{ context.name }}`, nothing more. */
export function evaluateTemplate(template: string, contexts: Contexts): string {
  return template.replace(/\$\{\{\s*(.*?)\s*\}\}/g, (_, expression: string) => {
    const match = /^([a-z]+)\.([A-Za-z0-9_-]+)$/.exec(expression)
    const context = match?.[1] === undefined ? undefined : contexts[match[1]]
    if (match?.[2] === undefined || context === undefined) throw new Error(`the runner double cannot evaluate '${expression}'`)
    return context[match[2]] ?? ''
  })
}

type StepInputs = { manifest: ActionManifest; given: Readonly<Record<string, string>>; contexts: Contexts }

/**
 * The step's inputs: those of `with`, and the defaults of the others. Names compare without regard to case. `unexpected` are
 * those that action.yml does not declare; the runner passes them on with a warning.
 */
export function resolveInputs({ manifest, given, contexts }: StepInputs) {
  const givenNames = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  const declared = new Set(Object.keys(manifest.inputs).map((name) => name.toLowerCase()))
  const inputs: Record<string, string> = { ...given }
  for (const [name, template] of Object.entries(manifest.inputs)) {
    if (!givenNames.has(name.toLowerCase())) inputs[name] = evaluateTemplate(template, contexts)
  }
  return { inputs, unexpected: Object.keys(given).filter((name) => !declared.has(name.toLowerCase())) }
}

/** `INPUT_<NAME>`: upper case, a space becomes an underscore, a hyphen stays. */
export function inputEnvironment(inputs: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(inputs)
  return Object.fromEntries(entries.map(([name, value]) => [`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`, value]))
}
