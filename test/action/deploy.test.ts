import { afterEach, describe, expect, it, vi } from 'vitest'
import { deploy } from '../../src/action/deploy.ts'
import type { Inputs } from '../../src/action/inputs.ts'
import type { ActionFailure } from '../../src/action/report/error-codes.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import {
  COMMIT,
  deployment,
  DEPLOYMENT_ID,
  DIGEST,
  GIT_SOURCE,
  NEW_REVISION_ID,
  OLD_REVISION_ID,
  REPO_URL,
  revision,
} from './support/answers.ts'
import { actionFailureOf } from './support/caught.ts'
import { fakeDeps, inputs, TARGET_BY_ID, type TestDeps } from './support/deps.ts'

const image = { kind: 'external_docker', imageUri: DIGEST } as const

const DEPLOYING = `Deploying main of ${REPO_URL} (langgraph.json) through https://control-plane.example.com.`
const FOUND = `Found the deployment 'agent' (${DEPLOYMENT_ID}).`
const MADE = `Made the revision ${NEW_REVISION_ID}.`
const ACCEPTED = `wait: false: the revision ${NEW_REVISION_ID} was accepted and is not followed.`

/** Deploys without following the revision, unless a test says otherwise. */
async function deployed(wanted: Partial<Inputs> = {}, deps: TestDeps = fakeDeps()) {
  const ended = await deploy(inputs({ wait: false, ...wanted }), deps)
  return { ...deps, ended }
}

const refused = (wanted: Partial<Inputs>, deps: TestDeps): Promise<ActionFailure> => actionFailureOf(deployed(wanted, deps))

const found = (changes: Record<string, unknown>): TestDeps => fakeDeps({ findDeploymentByName: async () => deployment(changes) })

afterEach(() => {
  vi.useRealTimers()
})

describe('the lines of a deploy', () => {
  it('say what is deployed, where it is found, and what was made', async () => {
    const { ended, lines, warnings } = await deployed()
    expect(ended).toBe('deployed')
    expect(lines).toEqual([DEPLOYING, FOUND, MADE, ACCEPTED])
    expect(warnings).toEqual([])
  })

  it('say that a deployment is not there yet', async () => {
    const { lines } = await deployed({}, fakeDeps({ findDeploymentByName: async () => null }))
    expect(lines).toEqual([
      DEPLOYING,
      "There is no deployment named 'agent' yet.",
      `Created the deployment 'agent' (${DEPLOYMENT_ID}); revision ${NEW_REVISION_ID}.`,
      ACCEPTED,
    ])
  })

  it('name an image by its address', async () => {
    const { lines } = await deployed({ source: image }, found({ source: 'external_docker', source_config: {} }))
    expect(lines[0]).toBe(`Deploying ${DIGEST} through https://control-plane.example.com.`)
  })

  it('come from a deployment that is named by its id as well', async () => {
    const { lines, controlPlane } = await deployed(
      { target: TARGET_BY_ID },
      fakeDeps({ getDeployment: vi.fn(async () => deployment()) }),
    )
    expect(lines.slice(0, 2)).toEqual([DEPLOYING, FOUND])
    expect(controlPlane.findDeploymentByName).not.toHaveBeenCalled()
  })
})

describe('what might surprise', () => {
  const EACH_PUSH = 'build_on_push is on: a push to this branch makes a revision of its own, beside the one of this step.'

  it.each([
    ['one variable', ['GONE'], 'GONE is not among them and will be gone.'],
    ['two variables', ['GONE', 'LOST'], 'GONE, LOST are not among them and will be gone.'],
  ])('is that secrets takes %s away', async (_, names, told) => {
    const deps = found({ secrets: ['KEPT', ...names].map((name) => ({ name })) })
    const { warnings } = await deployed({ secrets: [{ name: 'KEPT', value: 'x' }] }, deps)
    expect(warnings).toEqual([`secrets replaces all variables of the deployment: ${told}`])
  })

  it('is that source-config changes nothing that is there', async () => {
    const sourceConfig = { resource_spec: { cpu: 2 }, install_command: 'npm ci' }
    const { warnings } = await deployed({ sourceConfig })
    expect(warnings).toEqual([
      'source-config is only used on create: resource_spec, install_command of the live deployment stays as it is.',
    ])
  })

  it('is that a push is built twice', async () => {
    const { lines } = await deployed({}, found({ source_config: { repo_url: REPO_URL, build_on_push: true } }))
    expect(lines).toEqual([DEPLOYING, FOUND, EACH_PUSH, MADE, ACCEPTED])
    expect((await deployed()).lines).not.toContain(EACH_PUSH)
  })
})

describe('a plan', () => {
  const PLANNED = 'dry-run: nothing was changed.'

  it('of an update says what differs, under a title', async () => {
    const { ended, lines, groups, outputs, journal } = await deployed({
      dryRun: true,
      source: { ...GIT_SOURCE, repoRef: 'next', commit: COMMIT },
    })
    expect(ended).toBe('planned')
    expect(lines.slice(1)).toEqual([FOUND, PLANNED])
    expect(groups).toEqual([
      { title: 'Plan: update the deployment', lines: ['repo_ref: main -> next', `commit: (not told) -> ${COMMIT}`] },
    ])
    expect(outputs).toMatchObject({ 'deployment-name': 'agent', 'deployment-id': DEPLOYMENT_ID })
    expect(journal.notes).toEqual([])
  })

  it('of a creation names the deployment that would be made', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => null })
    const { ended, groups, outputs, lines, journal } = await deployed({ dryRun: true, skipUnchanged: true }, deps)
    expect(ended).toBe('planned')
    expect(groups.map(({ title }) => title)).toEqual(['Plan: create the deployment'])
    expect(outputs).toEqual({ 'deployment-name': 'agent' })
    expect(lines.at(-1)).toBe(PLANNED)
    expect(journal.notes).toEqual([])
  })

  it('tells the name that is live, not the one that was asked for', async () => {
    const { outputs } = await deployed({ dryRun: true, target: { name: 'another' } })
    expect(outputs['deployment-name']).toBe('agent')
  })

  it('says nothing about skip-unchanged where that is not wanted', async () => {
    const deps = fakeDeps({ getRevision: vi.fn(async () => revision('DEPLOYED', { id: OLD_REVISION_ID })) })
    const { journal } = await deployed({ dryRun: true, source: GIT_SOURCE }, deps)
    expect(journal.notes).toEqual([])
    expect(deps.controlPlane.getRevision).not.toHaveBeenCalled()
  })

  it('compares with the newest source where no revision serves yet', async () => {
    const deps = found({ active_revision_id: null, source_revision_config: { repo_ref: 'next' } })
    const { groups } = await deployed({ dryRun: true }, deps)
    expect(groups[0]!.lines).toEqual(['repo_ref: next -> main', 'graph_config_path: (none) -> langgraph.json'])
    expect(deps.controlPlane.getRevision).not.toHaveBeenCalled()
  })

  it('is none when the revision that serves cannot be read', async () => {
    const deps = fakeDeps({
      findDeploymentByName: async () => deployment({ latest_revision_id: NEW_REVISION_ID }),
      getRevision: async () => Promise.reject(httpFailure(503, { summary: 'answered 503' })),
    })
    const failure = await refused({ dryRun: true }, deps)
    expect(failure).toMatchObject({ code: 'E_UNAVAILABLE' })
    expect(failure.message).toMatch(new RegExp(`^Reading the revision ${OLD_REVISION_ID} failed: `))
  })
})

describe('skip-unchanged', () => {
  const skip = { skipUnchanged: true, source: GIT_SOURCE } as const

  it('makes no revision of what is live, and hands on what is known of it', async () => {
    const getRevision = vi.fn(async () => revision('DEPLOYED', { id: OLD_REVISION_ID }))
    const { ended, lines, outputs, journal, controlPlane } = await deployed(skip, fakeDeps({ getRevision }))
    expect(ended).toBe('unchanged')
    expect(lines).toEqual([DEPLOYING, FOUND, `The revision ${OLD_REVISION_ID} already serves what is wanted: nothing to do.`])
    expect(outputs).toMatchObject({ 'revision-id': OLD_REVISION_ID, 'revision-status': 'DEPLOYED', 'commit-sha': COMMIT })
    expect(outputs).not.toHaveProperty('image-uri')
    expect(journal.notes).toEqual([])
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
    expect(getRevision).toHaveBeenCalledTimes(1)
    expect(getRevision).toHaveBeenCalledWith({
      deploymentId: DEPLOYMENT_ID,
      revisionId: OLD_REVISION_ID,
      signal: expect.any(AbortSignal),
    })
  })

  it.each([
    ['is not smoke-tested with wait: false', false],
    ['is smoke-tested otherwise', true],
  ])('%s', async (_, wait) => {
    const deps = fakeDeps({
      getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }),
      getDeployment: async () => deployment({ active_revision_id: OLD_REVISION_ID }),
    })
    const smokeTest = { input: {}, streamMode: 'updates', timeoutMs: 1000 } as const
    const agentServer = vi.fn(() => {
      throw new Error('there is no agent here')
    })
    const ended = deployed({ ...skip, wait, smokeTest }, { ...deps, agentServer })
    if (wait) await expect(ended).rejects.toThrow('there is no agent here')
    else expect((await ended).ended).toBe('unchanged')
    expect(agentServer).toHaveBeenCalledTimes(wait ? 1 : 0)
    expect(deps.outputs['smoke-test']).toBe(wait ? 'failed' : 'skipped')
  })

  it('hands on the image that is live', async () => {
    const source_revision_config = { image_uri: DIGEST }
    const deps = fakeDeps({
      findDeploymentByName: async () => deployment({ source: 'external_docker', source_config: {}, source_revision_config }),
      getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID, source: 'external_docker', source_revision_config }),
    })
    const { ended, outputs } = await deployed({ skipUnchanged: true, source: image }, deps)
    expect(ended).toBe('unchanged')
    expect(outputs['image-uri']).toBe(DIGEST)
  })

  it('deploys, and says why, where no revision serves yet', async () => {
    const deps = found({ active_revision_id: null })
    const { ended, lines, journal } = await deployed(skip, deps)
    const why = 'skip-unchanged: deploying, because no revision serves yet.'
    expect(ended).toBe('deployed')
    expect(lines).toEqual([DEPLOYING, FOUND, why, MADE, ACCEPTED])
    expect(journal.notes).toEqual([why])
  })

  it('reads the newest revision as well, and deploys while that one is under way', async () => {
    const asked: string[] = []
    const deps = fakeDeps({
      findDeploymentByName: async () => deployment({ latest_revision_id: NEW_REVISION_ID }),
      patchDeployment: async () => ({ deployment: deployment(), revisionId: 'third', recovered: false }),
      getRevision: async ({ revisionId: id }) => {
        asked.push(id)
        return revision(id === OLD_REVISION_ID ? 'DEPLOYED' : 'BUILDING', { id })
      },
    })
    const { ended, outputs, journal } = await deployed(skip, deps)
    expect(ended).toBe('deployed')
    expect(asked).toEqual([OLD_REVISION_ID, NEW_REVISION_ID, 'third'])
    expect(journal.notes).toEqual([`skip-unchanged: deploying, because a newer revision, ${NEW_REVISION_ID}, is BUILDING.`])
    expect(outputs['revision-id']).toBe('third')
  })

  it('does without a newest revision that is not told', async () => {
    const getRevision = vi.fn(async () => revision('DEPLOYED', { id: OLD_REVISION_ID }))
    const deps = fakeDeps({ findDeploymentByName: async () => deployment({ latest_revision_id: null }), getRevision })
    expect((await deployed(skip, deps)).ended).toBe('unchanged')
    expect(getRevision).toHaveBeenCalledTimes(1)
  })

  it('creates what is not there, without a word', async () => {
    const deps = fakeDeps({ findDeploymentByName: async () => null })
    const { ended, journal, controlPlane } = await deployed(skip, deps)
    expect(ended).toBe('deployed')
    expect(controlPlane.createDeployment).toHaveBeenCalledTimes(1)
    expect(journal.notes).toEqual([])
  })

  it('hands on nothing of what is live when the deploy that it makes fails', async () => {
    const deps = fakeDeps({
      getRevision: async () => revision('DEPLOYED', { id: OLD_REVISION_ID }),
      patchDeployment: async () => Promise.reject(httpFailure(422)),
    })
    const source = { ...GIT_SOURCE, commit: 'b'.repeat(40), eventCommit: 'b'.repeat(40) }
    expect((await refused({ ...skip, source }, deps)).code).toBe('E_VALIDATION')
    for (const name of ['revision-id', 'revision-status', 'commit-sha']) expect(deps.outputs).not.toHaveProperty(name)
  })

  it('fails when a revision cannot be read, and changes nothing', async () => {
    const deps = fakeDeps({ getRevision: async () => Promise.reject(requestFailure({ summary: 'got no answer' })) })
    const failure = await refused(skip, deps)
    expect(failure.code).toBe('E_UNAVAILABLE')
    expect(failure.message).toMatch(new RegExp(`^Reading the revision ${OLD_REVISION_ID} failed: `))
    expect(deps.controlPlane.patchDeployment).not.toHaveBeenCalled()
  })
})

it.each([
  ['well', {}],
  ['with a failure', { findDeploymentByName: async () => Promise.reject(httpFailure(500)) }],
])('leaves no timer behind when it ends %s', async (_, changes) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await deploy(inputs({ wait: false }), fakeDeps(changes)).catch(() => undefined)
  expect(vi.getTimerCount()).toBe(0)
})
