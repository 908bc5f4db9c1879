import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { makeRun } from '../platform/traces/support/runs.ts'
import { startGithubDouble, stateOf } from '../support/github-double.ts'
import type { WorkflowEvent } from '../support/runner/job-environment.ts'
import { REPOSITORY_ROOT } from '../support/runner.ts'
import { DEPLOYED, type Ending, failed, flawsOf } from '../support/scene.ts'
import type { Permissions } from '../support/workflow/permissions.ts'
import { readWorkflow } from '../support/workflow/workflow-file.ts'
import { copyWorkingTree } from '../support/workflow/working-tree.ts'
import { runWorkflow, type WorkflowRun } from '../support/workflow/workflow-run.ts'
import { dispatchEvent, scheduleEvent, startWorkflowWorld, type WorkflowWorld } from '../support/workflow/world.ts'

/**
 * The workflows themselves are carried out: read by GitHub's parser, with GitHub's evaluation of expressions, in jobs with the
 * permissions that they ask for and no others, against the platform and with the committed bundle.
 */

const EXAMPLES = join(REPOSITORY_ROOT, 'examples', 'workflows')
const REMOVED: Ending = { status: 'removed' }

type Deployment = { name: string; secrets: { name: string }[]; source_config: Record<string, unknown> }

let world: WorkflowWorld
let projectId: string
/** What the jobs of the examples were granted, and what their runs needed, by file and job. */
const permissions = new Map<string, { granted: Permissions; used: Permissions }>()

beforeAll(async () => {
  const vars = { AGENT_INTEGRATION_ID: '0b5a1c1e-6a77-4d0e-9a39-3d8f3a1d2b11', TRACES_BUCKET: 'traces', AGENT_PROJECT_ID: '' }
  world = await startWorkflowWorld({ vars })
  projectId = (await world.read<{ id: string }>('/sessions', { name: 'traces of the agent' })).id
}, 120_000)
afterAll(() => world?.dispose())

/** Runs an example as it stands. */
async function run(file: string, event: WorkflowEvent): Promise<WorkflowRun> {
  const vars = { AGENT_PROJECT_ID: projectId }
  const result = await world.run(file, event, { vars: { ...world.vars, ...vars } })
  if (result === null) throw new Error(`${file} is not started by ${event.name}`)
  for (const { id, conclusion, granted, used } of result.jobs) {
    if (conclusion === 'skipped') continue
    const before = permissions.get(`${file} ${id}`)
    permissions.set(`${file} ${id}`, { granted: most(before?.granted, granted), used: most(before?.used, used) })
  }
  return result
}

/** The higher level of each permission: a pull request of a fork is granted less, and not every event needs all. */
function most(before: Permissions | undefined, now: Permissions): Permissions {
  const levels = ['none', 'read', 'write'] as const
  const higher = (name: keyof Permissions) =>
    levels[Math.max(levels.indexOf(before?.[name] ?? 'none'), levels.indexOf(now[name]))]
  return Object.fromEntries((Object.keys(now) as (keyof Permissions)[]).map((name) => [name, higher(name)])) as Permissions
}

/** Runs an example without one of its permissions. */
async function runWithout(line: string, file: string, event: WorkflowEvent): Promise<WorkflowRun> {
  const edit = (text: string): string => {
    if (text.split(` ${line}`).length !== 2) throw new Error(`${file} has not one line ${line}`)
    return text.replace(` ${line}`, ` ${line.replace(/: .*/, ': none')}`)
  }
  const result = await world.run(file, event, { edit })
  if (result === null) throw new Error(`${file} is not started by ${event.name}`)
  return result
}

/** What is wrong with the one step of this action. */
async function flaws(result: WorkflowRun, ending: Ending): Promise<string[]> {
  expect(result.actions).toHaveLength(1)
  const secrets = Object.values(world.secrets)
  return (await Promise.all(result.actions.map((action) => flawsOf(action, ending, secrets)))).flat()
}

const annotations = (result: WorkflowRun) =>
  result.jobs
    .flatMap(({ steps }) => steps.flatMap((step) => [step.result, step.result?.post ?? null]))
    .flatMap((phase) => phase?.annotations ?? [])
    .map(({ level, message }) => `${level}: ${message}`)
const conclusions = (result: WorkflowRun) => Object.fromEntries(result.jobs.map(({ id, conclusion }) => [id, conclusion]))
const said = (result: WorkflowRun, name: string) =>
  result.jobs.flatMap(({ steps }) => steps).find((step) => step.name === name)?.result?.log

const whatFailed = ({ jobs }: WorkflowRun) =>
  jobs
    .flatMap(({ steps }) => steps.filter(({ conclusion }) => conclusion === 'failure'))
    .map(({ name, result }) => `${name}:\n${result?.log}`)

async function deployments(): Promise<string[]> {
  const { resources } = await world.read<{ resources: Deployment[] }>('/v2/deployments?limit=100')
  return resources.map(({ name }) => name).toSorted()
}

const records = () => world.github.state.deployments.map((record) => [record.environment, stateOf(record)])

describe('deploy.yml', { timeout: 120_000 }, () => {
  it('deploys a push to main, and tells where it serves', async () => {
    const result = await run('deploy.yml', await world.pushEvent())
    expect(await flaws(result, DEPLOYED)).toEqual([])
    expect([annotations(result), conclusions(result)]).toEqual([[], { deploy: 'success' }])
    const { outputs } = result.step('deploy')
    expect(said(result, 'Show where it serves')).toBe(`Revision ${outputs['revision-id']} serves at ${outputs['deployment-url']}`)
    expect(await world.ask(result.actions[0])).toBe('version 1')
    const live = await world.read<Deployment>(`/v2/deployments/${outputs['deployment-id']}`)
    expect(live).toMatchObject({ name: 'agent', source_config: { build_on_push: false } })
    expect(live.secrets.map(({ name }) => name)).toEqual(['MODEL_API_KEY'])
    expect(result.concurrency).toEqual({ group: 'deploy-agent', cancelInProgress: false })
  })

  it('is not started by other branches and by tags', async () => {
    const push = await world.pushEvent()
    expect(await world.run('deploy.yml', { ...push, ref: 'refs/heads/other' })).toBeNull()
    expect(await world.run('deploy.yml', { ...push, ref: 'refs/tags/v1.0.0' })).toBeNull()
  })
})

describe('preview.yml, preview-teardown.yml and sweep.yml', { timeout: 120_000 }, () => {
  const group = { group: 'preview-7', cancelInProgress: false }

  it('make a preview, bring it up to date, and remove it', async () => {
    await world.open(7, 'seven')
    const opened = await run('preview.yml', world.pullRequestEvent(7, 'opened'))
    expect([await flaws(opened, DEPLOYED), annotations(opened), opened.concurrency]).toEqual([[], [], group])
    const url = opened.step('preview').outputs['deployment-url']
    expect(said(opened, 'Show where it serves')).toBe(`The preview serves at ${url}`)
    expect([await world.ask(opened.actions[0]), records()]).toEqual(['version seven', [['preview-7', 'success']]])

    await world.commit('seven again', 7)
    const pushed = await run('preview.yml', world.pullRequestEvent(7, 'synchronize'))
    expect([await flaws(pushed, DEPLOYED), annotations(pushed)]).toEqual([[], []])
    expect([await world.ask(pushed.actions[0]), await deployments()]).toEqual(['version seven again', ['agent', 'agent-pr-7']])
    expect(world.github.state.comments.map(({ pullRequest, edits }) => [pullRequest, edits])).toEqual([[7, 1]])

    world.close(7)
    const closed = await run('preview.yml', world.pullRequestEvent(7, 'closed'))
    expect([await flaws(closed, REMOVED), annotations(closed), await deployments()]).toEqual([[], [], ['agent']])
    expect(said(closed, 'Show where it serves')).toBeUndefined()
    expect(records()).toEqual([
      ['preview-7', 'inactive'],
      ['preview-7', 'inactive'],
    ])
  })

  it('remove what a close with a conflict, and a close that nobody saw, have left', async () => {
    await world.open(8, 'eight')
    await world.open(9, 'nine')
    for (const number of [8, 9]) {
      expect(await flaws(await run('preview.yml', world.pullRequestEvent(number, 'opened')), DEPLOYED)).toEqual([])
      world.close(number)
    }
    const conflict = await run('preview-teardown.yml', world.pullRequestEvent(8, 'closed', 'pull_request_target'))
    expect([await flaws(conflict, REMOVED), annotations(conflict)]).toEqual([[], []])
    expect([conflict.concurrency, await deployments()]).toEqual([{ ...group, group: 'preview-8' }, ['agent', 'agent-pr-9']])

    const planned = await run('sweep.yml', dispatchEvent({ 'dry-run': true }))
    expect([await flaws(planned, { status: 'planned' }), await deployments()]).toEqual([[], ['agent', 'agent-pr-9']])
    const refused = await runWithout('pull-requests: read', 'sweep.yml', scheduleEvent('17 3 * * *'))
    expect(await flaws(refused, failed('E_AUTH', 'pull-requests: read', 'Nothing was removed'))).toEqual([])
    const swept = await run('sweep.yml', scheduleEvent('17 3 * * *'))
    expect([await flaws(swept, REMOVED), annotations(swept), await deployments()]).toEqual([[], [], ['agent']])
    expect(records().filter(([, state]) => state !== 'inactive')).toEqual([])
  })

  it('do nothing for a fork, which gets no secrets', async () => {
    await world.open(10, 'ten', 'mallory/agents')
    const opened = await run('preview.yml', world.pullRequestEvent(10, 'opened'))
    expect(await flaws(opened, { status: 'skipped' })).toEqual([])
    expect(annotations(opened)).toEqual([expect.stringMatching(/^notice: .*comes from a fork/)])
    world.close(10)
    const closed = await run('preview-teardown.yml', world.pullRequestEvent(10, 'closed', 'pull_request_target'))
    expect([await flaws(closed, REMOVED), await deployments()]).toEqual([[], ['agent']])
  })

  it('warn without one of their permissions', async () => {
    await world.open(11, 'eleven')
    world.close(11)
    const warnings = {
      'deployments: write': [/^warning: environment: .*"deployments: read"/],
      'pull-requests: write': [
        /^warning: .*"pull-requests: read".*: the event says closed/,
        /^warning: comment: .*"pull-requests: write"/,
      ],
    }
    for (const [line, expected] of Object.entries(warnings)) {
      const preview = await runWithout(line, 'preview.yml', world.pullRequestEvent(11, 'closed'))
      const teardown = await runWithout(line, 'preview-teardown.yml', world.pullRequestEvent(11, 'closed', 'pull_request_target'))
      for (const result of [preview, teardown]) {
        expect(await flaws(result, REMOVED)).toEqual([])
        expect(annotations(result)).toEqual(expected.map((text) => expect.stringMatching(text)))
      }
    }
  })
})

describe('promote.yml', { timeout: 120_000 }, () => {
  const tag = 'v1.0.0'

  it('deploys a push to staging, tests it, and leaves the proof that a release is promoted with', async () => {
    await world.tag(tag)
    const unproven = await runWithout('deployments: write', 'promote.yml', await world.pushEvent())
    expect(await flaws(unproven, DEPLOYED)).toEqual([])
    expect(annotations(unproven)).toEqual([expect.stringContaining('deployments: write')])
    const refused = await run('promote.yml', await world.releaseEvent(tag))
    expect(await flaws(refused, failed('E_CONFLICT', 'no record'))).toEqual([])
    expect(conclusions(refused)).toEqual({ staging: 'skipped', production: 'failure' })

    const staged = await run('promote.yml', await world.pushEvent())
    expect([await flaws(staged, DEPLOYED), annotations(staged)]).toEqual([[], []])
    expect(conclusions(staged)).toEqual({ staging: 'success', production: 'skipped' })
    expect(staged.actions[0]?.outputs).toMatchObject({ 'deployment-name': 'agent-staging', 'smoke-test': 'passed' })

    const promoted = await run('promote.yml', await world.releaseEvent(tag))
    expect([await flaws(promoted, DEPLOYED), annotations(promoted)]).toEqual([[], []])
    expect(promoted.jobs.map(({ concurrency }) => concurrency?.group)).toEqual([undefined, 'agent-production'])
    const { outputs } = promoted.step('promote')
    expect(outputs).toMatchObject({ 'smoke-test': 'passed', 'commit-sha': staged.actions[0]?.outputs['commit-sha'] })
    const record = world.github.state.deployments.findLast(({ environment }) => environment === 'production')
    expect(record?.statuses.at(-1)).toMatchObject({ state: 'success', environmentUrl: outputs['deployment-url'] })
  })

  it('goes red without a permission that the promotion needs', async () => {
    for (const line of ['contents: read', 'deployments: read']) {
      const result = await runWithout(line, 'promote.yml', await world.releaseEvent(tag))
      expect(await flaws(result, failed('E_AUTH', line))).toEqual([])
    }
  })
})

describe('export.yml', { timeout: 60_000 }, () => {
  const DAY = 86_400_000
  const midnight = Math.floor(Date.now() / DAY) * DAY

  async function trace(...times: number[]): Promise<void> {
    const traces = times.map((time) => {
      const at = new Date(time).toISOString()
      return makeRun({ start_time: at, end_time: at, session_id: projectId, session_name: undefined })
    })
    await world.read('/runs/batch', { post: traces })
  }

  it('writes the traces of the day before to the bucket, and tells how many', async () => {
    await trace(midnight - DAY - 1, midnight - DAY, midnight - 1, midnight)
    const result = await run('export.yml', scheduleEvent('23 2 * * *'))
    expect([await flaws(result, { status: 'exported' }), annotations(result)]).toEqual([[], []])
    expect(said(result, 'Show what was written')).toBe('2 runs in 1 files')
    expect((await world.bucket.keys()).filter((key) => key.endsWith('.parquet'))).toEqual([
      expect.stringMatching(/^agent-traces\//),
    ])
  })

  it('writes those of the day that is named by hand, and of the day before where none is', async () => {
    const first = midnight - 9 * DAY
    const day = new Date(first).toISOString().slice(0, 10)
    await trace(first - 1, first, first + DAY / 2, first + DAY - 1, first + DAY)
    for (const [inputs, runs] of [
      [{ day }, 3],
      [{}, 2],
    ] as const) {
      const result = await run('export.yml', dispatchEvent(inputs))
      expect([await flaws(result, { status: 'exported' }), annotations(result)]).toEqual([[], []])
      expect(said(result, 'Show what was written')).toBe(`${runs} runs in 1 files`)
    }
  })

  it('asks for nothing when what is named is no day', async () => {
    const result = await run('export.yml', dispatchEvent({ day: '2026-02-30' }))
    expect([conclusions(result), result.actions]).toEqual([{ export: 'failure' }, []])
    expect(whatFailed(result)).toEqual([expect.stringMatching(/invalid date .2026-02-30/)])
  })
})

describe('ci.yml', { timeout: 120_000 }, () => {
  const CI = join(REPOSITORY_ROOT, '.github', 'workflows', 'ci.yml')
  /** Steps that are not carried out as they stand. */
  const INSTEAD: Readonly<Record<string, string>> = {
    // The packages of this work tree are linked into the copy.
    'npm ci': 'ls node_modules/.bin/vitest',
    // Whoever runs this test runs those, too: that there are any is enough.
    'npx vitest run test/action test/client test/contract':
      'for kind in action client contract; do npx vitest list --filesOnly "test/$kind" | grep --quiet "test/$kind/"; done',
  }
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ci-'))
    await copyWorkingTree(folder)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Runs one of its jobs, on a port that is free here. */
  async function job(id: string): Promise<WorkflowRun> {
    const github = await startGithubDouble()
    const port = await freePort()
    const moved = (text: string) => text.replaceAll('127.0.0.1:8787', `127.0.0.1:${port}`)
    const event = await world.pushEvent()
    const result = await runWorkflow({
      path: CI,
      jobs: [id],
      event,
      github,
      workspace: folder,
      machine: { ...networkOfThisMachine(), PLATFORM_PORT: String(port) },
      inputs: (inputs) => Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, moved(value)])),
      script: (script) => INSTEAD[script] ?? moved(script),
    })
    await github.stop()
    if (result === null) throw new Error('ci.yml is not started by a push')
    return result
  }

  it('uses the action against the platform', async () => {
    const result = await job('use')
    expect([conclusions(result), whatFailed(result)]).toEqual([{ use: 'success' }, []])
    expect(result.step('deploy').outputs['status']).toBe('deployed')
    expect(result.jobs[0]?.steps.map(({ conclusion }) => conclusion).at(-1)).toBe('skipped')
    const logs = result.jobs.flatMap(({ steps }) => steps.map((step) => step.result?.log))
    expect(logs.join('\n')).not.toContain(result.step('platform').outputs['api-key'])
    await result.dispose()
  })

  it('sees the bundle refuse an input on each system', async () => {
    const result = await job('systems')
    expect(whatFailed(result)).toEqual([])
    expect(result.jobs.map(({ name, conclusion }) => [name, conclusion])).toEqual([
      ['systems ubuntu-latest', 'success'],
      ['systems macos-latest', 'elsewhere'],
      ['systems windows-latest', 'elsewhere'],
    ])
    expect(result.step('refused')).toMatchObject({ outcome: 'failure', conclusion: 'success' })
    await result.dispose()
  })
})

describe('all workflows', () => {
  it('are read by GitHub without an error', async () => {
    for (const folder of [EXAMPLES, join(REPOSITORY_ROOT, '.github', 'workflows')]) {
      for (const file of await readdir(folder)) expect((await readWorkflow(join(folder, file))).jobs.length).toBeGreaterThan(0)
    }
  })

  it('of the examples have been carried out, job by job, and need each permission that they ask for', async () => {
    const jobs: string[] = []
    for (const file of await readdir(EXAMPLES)) {
      for (const { id } of (await readWorkflow(join(EXAMPLES, file))).jobs) jobs.push(`${file} ${id}`)
    }
    expect([...permissions.keys()].toSorted()).toEqual(jobs.toSorted())
    for (const [job, { granted, used }] of permissions) expect({ job, ...used }).toEqual({ job, ...granted })
  })

  it('of the examples ask for secrets and variables that the README names', async () => {
    const readme = await readFile(join(REPOSITORY_ROOT, 'README.md'), 'utf8')
    for (const name of [...Object.keys(world.secrets), ...Object.keys(world.vars)]) expect(readme).toContain(name)
  })
})

describe('dependabot.yml', () => {
  it('waits as long as SECURITY.md says, for each list of packages', async () => {
    const [config, promise] = await Promise.all(
      ['.github/dependabot.yml', 'SECURITY.md'].map((file) => readFile(join(REPOSITORY_ROOT, file), 'utf8')),
    )
    expect(promise).toContain('Updates wait a week, major versions of packages three')
    type Entry = { 'package-ecosystem': string; directory: string; cooldown: Record<string, number> }
    const { updates } = parse(config ?? '') as { updates: Entry[] }
    const week = { 'default-days': 7 }
    const waits = updates.map((entry) => [entry['package-ecosystem'], entry.directory, entry.cooldown])
    expect(waits).toEqual([
      ['npm', '/', { ...week, 'semver-major-days': 21 }],
      ['npm', '/examples/echo-agent', { ...week, 'semver-major-days': 21 }],
      ['github-actions', '/', week],
    ])
  })
})

/** What a hosted runner has by itself: a way to the registry, and setup-node's cache of packages. */
function networkOfThisMachine(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) =>
    /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|npm_config_registry)$/i.test(name),
  )
  const values = Object.fromEntries(names.map((name) => [name, process.env[name] ?? '']))
  return { npm_config_cache: join(homedir(), '.npm'), ...values }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
