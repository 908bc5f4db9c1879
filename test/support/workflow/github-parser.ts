import { registerHooks } from 'node:module'
import type { WorkflowTemplate } from '@actions/workflow-parser'
import { splitAllowedContext } from '@actions/workflow-parser/templates/allowed-context'
import type { MappingToken } from '@actions/workflow-parser/templates/tokens/mapping-token'
import { parse } from 'yaml'

/** GitHub's own parser of workflows. */

// It imports its schema without saying that it is JSON, as bundlers allow and Node does not.
const hooks = registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context)
    const schema = /\/@actions\/workflow-parser\/.*\.json$/.test(found.url)
    return schema ? { ...found, importAttributes: { type: 'json' } } : found
  },
})
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow, ...guards } = await import('@actions/workflow-parser')
hooks.deregister()

export const { isBasicExpression, isMapping, isScalar, isSequence } = guards
export { splitAllowedContext }

/** A workflow as GitHub reads it: its tokens, and what GitHub makes of them. */
export type Parsed = { root: MappingToken; template: WorkflowTemplate }

/** @throws {Error} with everything that GitHub would refuse the file for, and where. */
export async function parseWorkflowText(path: string, content: string): Promise<Parsed> {
  await read(path, content)
  // Made for editors, it keeps the indentation of a block scalar (`|`) in the expressions that it finds there. JSON has none.
  return await read(path, JSON.stringify(parse(content)))
}

async function read(path: string, content: string): Promise<Parsed> {
  const { context, value } = parseWorkflow({ name: path, content }, new NoOperationTraceWriter())
  const template = value === undefined ? undefined : await convertWorkflowTemplate(context, value)
  const errors = context.errors.getErrors().map(({ message }) => message)
  if (errors.length > 0) throw new Error(`GitHub refuses ${path}:\n${errors.join('\n')}`)
  if (value === undefined || template === undefined) throw new Error(`${path} is empty`)
  return { root: value.assertMapping(path), template }
}
