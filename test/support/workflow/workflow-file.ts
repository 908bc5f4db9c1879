import { readFile } from 'node:fs/promises'
import type { EventsConfig } from '@actions/workflow-parser/model/workflow-template'
import type { MappingToken } from '@actions/workflow-parser/templates/tokens/mapping-token'
import type { TemplateToken } from '@actions/workflow-parser/templates/tokens/template-token'
import { isMapping, isSequence, parseWorkflowText } from './github-parser.ts'

/** A step as it is written. `id` is GitHub's own where the step has none, `if` has `success()` where GitHub adds it. */
export type StepTemplate = { id: string; if: TemplateToken; property: Property }
export type JobTemplate = { id: string; if: TemplateToken; needs: string[]; steps: StepTemplate[]; property: Property }

/** What stands in the file at a name. */
type Property = (name: string) => TemplateToken | undefined

export type WorkflowFile = { path: string; events: EventsConfig; jobs: JobTemplate[]; property: Property }

/** Reads a workflow; `edit` changes its text before. @throws {Error} with what GitHub would refuse it for. */
export async function readWorkflow(path: string, edit: (text: string) => string = (text) => text): Promise<WorkflowFile> {
  const { root, template } = await parseWorkflowText(path, edit(await readFile(path, 'utf8')))
  return {
    path,
    events: template.events,
    property: propertyOf(root),
    jobs: [...(root.find('jobs')?.assertMapping('jobs') ?? [])].map(({ value }, index) => {
      const job = template.jobs[index]
      if (job?.type !== 'job' || !isMapping(value))
        throw new Error(`${path}: a job that calls another workflow is not known here`)
      const written = value.find('steps')
      const steps = written !== undefined && isSequence(written) ? [...written] : []
      return {
        id: job.id.value,
        if: job.if,
        needs: (job.needs ?? []).map((need) => need.value),
        property: propertyOf(value),
        steps: job.steps.map((step, position) => {
          const token = steps[position]
          if (token === undefined || !isMapping(token) || step.if === undefined) throw new Error(`${path}: not a step`)
          return { id: step.id, if: step.if, property: propertyOf(token) }
        }),
      }
    }),
  }
}

function propertyOf(mapping: MappingToken): Property {
  return (name) => mapping.find(name)
}
