import { describe, expect, it, vi } from 'vitest'
import type { AgentServer } from '../../../src/client/agent-server.ts'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { RATE_LIMITED } from '../../../src/client/retry.ts'
import type { Github } from '../../../src/action/github/github.ts'
import { servesDescription, payloadOf, TASK } from '../../../src/action/github/proof.ts'
import type { GithubContext } from '../../../src/action/github/context.ts'
import { GithubFailure } from '../../../src/action/github/failure.ts'
import type { PromoteInputs } from '../../../src/action/inputs.ts'
import { run } from '../../../src/action/main.ts'
import { promote } from '../../../src/action/promote/promote.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { COMMIT, deployment, DEPLOYMENT_ID, DIGEST, NEW_REVISION_ID, OLD_REVISION_ID, revision } from '../support/answers.ts'
import { fakeDeps, inputs } from '../support/deps.ts'
import { githubContext } from '../support/github.ts'

const STAGING_ID = '2b4e28ba-2fa1-4d2b-883f-0016d3cca427'
const PROVEN = '00000000-0000-4000-8000-00000000000f'
const OTHER_COMMIT = 'b'.repeat(40)

function githubOf(changes: Partial<Github> = {}): Github {
  const never = async () => Promise.reject(new Error('not to be called'))
  return {
    getPullRequest: never,
    commitOfTag: vi.fn(async () => COMMIT),
    createDeployment: never,
    createDeploymentStatus: never,
    listDeployments: async () => [
      {
        id: 7,
        environment: 'staging',
        sha: COMMIT,
        ref: 'main',
        task: TASK,
        payload: payloadOf({ deployment: 'staging', 'control-plane': 'https://control-plane.example.com', mode: 'deploy' }),
        createdAt: 0,
      },
    ],
    listDeploymentStatuses: async () => [{ state: 'success', description: servesDescription(PROVEN, true), createdAt: 0 }],
    listComments: never,
    createComment: never,
    updateComment: never,
    deleteComment: never,
    viewer: never,
    ...changes,
  }
}

const staging = () => deployment({ id: STAGING_ID, name: 'staging', latest_revision_id: PROVEN, active_revision_id: PROVEN })

/** A promotion from staging to the deployment `agent`. `built`: the commits that the promoted revision is seen to have. */
async function step({
  wanted = {},
  plane = {},
  github = githubOf(),
  built = [COMMIT],
  context = githubContext(),
}: {
  wanted?: Partial<PromoteInputs>
  plane?: Partial<ControlPlane>
  github?: Github | null
  built?: (string | null)[]
  context?: GithubContext
} = {}) {
  const source = {
    kind: 'git_host',
    repoUrl: 'https://github.com/acme/agents',
    repoRef: 'main',
    configPath: 'langgraph.json',
  } as const
  const seen = [...built]
  const deps = fakeDeps({
    findDeploymentByName: async (name) => (name === 'staging' ? staging() : deployment()),
    getRevision: async ({ revisionId }) => {
      if (revisionId === PROVEN) return revision('DEPLOYED', { id: PROVEN })
      const commit = seen.length > 1 ? seen.shift() : seen[0]
      const config = { repo_ref: 'refs/tags/v1', graph_config_path: 'langgraph.json', repo_commit_sha: commit }
      return revision(seen.length > 1 ? 'BUILDING' : 'DEPLOYED', { id: revisionId, source_revision_config: config })
    },
    ...plane,
  })
  const promotion: PromoteInputs = {
    ...inputs({ source }),
    mode: 'promote',
    promote: { from: { name: 'staging' }, tag: 'refs/tags/v1' },
    ...wanted,
  }
  const outcome = await run(promotion, { ...deps, context, github: github ?? undefined })
  const failure = 'failure' in outcome ? outcome.failure : undefined
  return { ...deps, failure, ended: 'status' in outcome ? outcome.status : outcome.failure.code, message: failure?.message ?? '' }
}

describe('a promotion', () => {
  it('deploys the tag, with the configuration that was proven, and pushes build nothing', async () => {
    const { ended, controlPlane, journal, outputs } = await step()
    expect(ended).toBe('deployed')
    expect(controlPlane.patchDeployment).toHaveBeenCalledWith(
      expect.objectContaining({
        id: DEPLOYMENT_ID,
        body: {
          source_config: { build_on_push: false },
          source_revision_config: { repo_ref: 'refs/tags/v1', graph_config_path: 'langgraph.json' },
        },
      }),
    )
    expect(journal.notes[0]).toContain(`refs/tags/v1 at ${COMMIT}`)
    expect(journal.notes[0]).toContain(`the revision ${PROVEN} of 'staging'`)
    expect(outputs).toMatchObject({ 'deployment-id': DEPLOYMENT_ID, 'commit-sha': COMMIT })
  })

  it('creates the target where it is not there yet, with the integration of the one that was proven', async () => {
    const integration = '11111111-1111-4111-8111-111111111111'
    const proven = { ...staging(), source_config: { ...staging().source_config, integration_id: integration } }
    const { controlPlane } = await step({
      plane: { findDeploymentByName: async (name) => (name === 'staging' ? proven : null) },
    })
    const { source_config: config } = vi.mocked(controlPlane.createDeployment).mock.calls[0]?.[0] ?? {}
    expect(config).toMatchObject({ integration_id: integration, build_on_push: false })
  })

  it('only shows what it would do in a dry run', async () => {
    const { ended, journal, controlPlane } = await step({ wanted: { dryRun: true } })
    expect(ended).toBe('planned')
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
    expect(journal.plan).toContainEqual({ field: 'repo_ref', live: 'main', wanted: 'refs/tags/v1' })
    expect(journal.notes[0]).toContain('passed its smoke test at 1970-01-01T00:00:00.000Z in staging')
  })
})

describe('a promotion that is refused', () => {
  const unchanged = ({ controlPlane }: { controlPlane: ControlPlane }) => {
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
    expect(controlPlane.createDeployment).not.toHaveBeenCalled()
  }

  it.each<[string, Parameters<typeof step>[0], string, string]>([
    ['without the proof', { github: githubOf({ listDeployments: async () => [] }) }, 'E_CONFLICT', 'no record'],
    [
      'with the proof of another revision',
      {
        github: githubOf({
          listDeploymentStatuses: async () => [
            { state: 'success', description: servesDescription(OLD_REVISION_ID, true), createdAt: 0 },
          ],
        }),
      },
      'E_CONFLICT',
      'no record',
    ],
    ['of another commit', { github: githubOf({ commitOfTag: async () => OTHER_COMMIT }) }, 'E_CONFLICT', OTHER_COMMIT],
    [
      'when there is nothing to promote from',
      { plane: { findDeploymentByName: async () => null } },
      'E_NOT_FOUND',
      'to promote from',
    ],
    [
      'when nothing serves there',
      { plane: { findDeploymentByName: async () => ({ ...staging(), latest_revision_id: null, active_revision_id: null }) } },
      'E_CONFLICT',
      'nothing to promote',
    ],
    [
      'when its id is that of the target',
      {
        wanted: { promote: { from: { id: DEPLOYMENT_ID }, tag: 'refs/tags/v1' } },
        plane: { getDeployment: async () => deployment() },
      },
      'E_INPUT',
      'which is the deployment that is to be changed',
    ],
  ])('%s changes nothing', async (_, options, code, says) => {
    const result = await step(options)
    expect(result.ended).toBe(code)
    expect(result.message).toContain(says)
    unchanged(result)
  })

  it('without GitHub changes nothing, and says what is missing', async () => {
    const result = await step({ github: null })
    expect(result.ended).toBe('E_INPUT')
    expect(result.failure?.next).toContain('deployments: read')
    unchanged(result)
  })

  it('when GitHub does not let it see the records names the permission', async () => {
    const request = httpFailure(403, { detail: 'Resource not accessible by integration' })
    const refusal = new GithubFailure({ operation: 'listing the deployment records', request, permission: 'deployments: read' })
    const result = await step({ github: githubOf({ listDeployments: async () => Promise.reject(refusal) }) })
    expect(result.ended).toBe('E_AUTH')
    expect(result.failure?.next).toContain('deployments: read')
    unchanged(result)
  })

  it('when GitHub asks for patience does not call it a matter of permissions', async () => {
    const request = httpFailure(403, { detail: 'You have exceeded a secondary rate limit.', code: RATE_LIMITED })
    const limited = new GithubFailure({ operation: 'listing deployment records', request, permission: null })
    const result = await step({ github: githubOf({ listDeployments: async () => Promise.reject(limited) }) })
    expect(result.ended).toBe('E_RATE_LIMITED')
    expect(result.failure?.tried).toContain('Nothing was changed.')
    unchanged(result)
  })

  it('on a pull request of a fork takes the tags for those of this repository, not of the fork', async () => {
    const fork = 'https://github.com/mallory/agents'
    const head = { ref: 'x', sha: COMMIT, repo: { full_name: 'mallory/agents' } }
    const payload = { pull_request: { number: 7, state: 'open', head } }
    const result = await step({
      context: githubContext({ eventName: 'pull_request_target', payload }),
      plane: {
        findDeploymentByName: async () => ({ ...staging(), source_config: { ...staging().source_config, repo_url: fork } }),
      },
    })
    expect(result.ended).toBe('E_CONFLICT')
    expect(result.message).toContain('its tags say nothing about that one')
    unchanged(result)
  })
})

describe('a tag that moves while it is built', () => {
  it('is stopped before it comes into service', async () => {
    const { ended, message, controlPlane } = await step({ built: [null, OTHER_COMMIT, OTHER_COMMIT, OTHER_COMMIT] })
    expect(ended).toBe('E_CONFLICT')
    expect(message).toContain(COMMIT)
    expect(message).toContain(OTHER_COMMIT)
    expect(controlPlane.interruptRevision).toHaveBeenCalledTimes(1)
    expect(controlPlane.interruptRevision).toHaveBeenCalledWith(expect.objectContaining({ revisionId: NEW_REVISION_ID }))
  })

  it('is red where it could not be stopped, and where the commit is not told', async () => {
    expect((await step({ built: [OTHER_COMMIT] })).ended).toBe('E_CONFLICT')
    const silent = await step({ built: [null] })
    expect(silent.ended).toBe('E_CONFLICT')
    expect(silent.message).toContain('does not tell')
  })

  it.each([
    ['SKIPPED', null, 'E_SUPERSEDED'],
    ['SKIPPED', OTHER_COMMIT, 'E_SUPERSEDED'],
    ['INTERRUPTED', null, 'E_INTERRUPTED'],
    ['INTERRUPTED', COMMIT, 'E_INTERRUPTED'],
    ['INTERRUPTED', OTHER_COMMIT, 'E_CONFLICT'],
    ['BUILD_FAILED', OTHER_COMMIT, 'E_BUILD_FAILED'],
  ])('is told apart from a revision that ended %s for another reason (commit %s)', async (status, commit, code) => {
    const config = { repo_ref: 'refs/tags/v1', graph_config_path: 'langgraph.json', repo_commit_sha: commit }
    const getRevision: ControlPlane['getRevision'] = async ({ revisionId: id }) =>
      id === PROVEN ? revision('DEPLOYED', { id }) : revision(status, { id, source_revision_config: config })
    expect((await step({ plane: { getRevision } })).ended).toBe(code)
  })

  it('is rolled back', async () => {
    const { failure, controlPlane } = await step({
      built: [OTHER_COMMIT],
      wanted: { rollbackOnFailure: true },
      plane: { redeployRevision: vi.fn(async () => Promise.reject(httpFailure(400))) },
    })
    expect(failure?.code).toBe('E_CONFLICT')
    expect(controlPlane.redeployRevision).toHaveBeenCalledWith(expect.objectContaining({ revisionId: OLD_REVISION_ID }))
  })
})

describe('what a promotion says', () => {
  const nothing = 'Nothing was changed.'
  const target = 'Name the deployment that was proven in promote-from.'
  const missing = 'Check promote-from and workspace-id: it is the name or the id of the deployment that was proven.'

  it('about what it takes, and where it was proven', async () => {
    const { lines, journal } = await step()
    const sentence =
      `Promoting refs/tags/v1 at ${COMMIT}: the revision ${PROVEN} of 'staging' serves it, ` +
      'and passed its smoke test at 1970-01-01T00:00:00.000Z in staging.'
    expect(lines.slice(0, 2)).toEqual([`Promoting from 'staging' (${STAGING_ID}).`, sentence])
    expect(journal.notes[0]).toBe(sentence)
  })

  it.each<[string, Parameters<typeof step>[0], Record<string, unknown>]>([
    [
      'when nothing has the name',
      { plane: { findDeploymentByName: async () => null } },
      { code: 'E_NOT_FOUND', message: "There is no deployment named 'staging' to promote from.", tried: nothing, next: missing },
    ],
    [
      'when nothing serves there',
      { plane: { findDeploymentByName: async () => ({ ...staging(), latest_revision_id: PROVEN, active_revision_id: null }) } },
      {
        code: 'E_CONFLICT',
        message: "The deployment 'staging' has no revision that serves: there is nothing to promote.",
        tried: nothing,
        next: "Deploy 'staging' first, and see its smoke test pass.",
      },
    ],
    [
      'when it names the target',
      { wanted: { promote: { from: { name: 'agent' }, tag: 'refs/tags/v1' } } },
      {
        code: 'E_INPUT',
        message: `promote-from names 'agent' (${DEPLOYMENT_ID}), which is the deployment that is to be changed.`,
        tried: nothing,
        next: target,
      },
    ],
    [
      'when it names the target, and both are ids',
      {
        wanted: { promote: { from: { id: DEPLOYMENT_ID }, tag: 'refs/tags/v1' }, target: { id: DEPLOYMENT_ID } },
        plane: { getDeployment: async () => deployment() },
      },
      {
        code: 'E_INPUT',
        message: `promote-from names 'agent' (${DEPLOYMENT_ID}), which is the deployment that is to be changed.`,
        tried: nothing,
        next: target,
      },
    ],
    [
      'when there is no GitHub',
      { github: null },
      {
        code: 'E_INPUT',
        message:
          'github-token is empty, or GITHUB_REPOSITORY is: the proof of a smoke test is a record of GitHub, and cannot be read.',
        tried: nothing,
        next: 'Give github-token, and the job the permissions contents: read and deployments: read.',
      },
    ],
    [
      'when the revision cannot be read',
      { plane: { getRevision: () => Promise.reject(httpFailure(503, { path: '/v2/deployments/x/revisions/y' })) } },
      {
        code: 'E_UNAVAILABLE',
        message: `Reading the revision ${PROVEN} failed: GET /v2/deployments/x/revisions/y answered 503.`,
      },
    ],
    [
      'outside a repository',
      { context: githubContext({ repository: '' }) },
      { code: 'E_CONFLICT', message: expect.stringContaining('and this workflow runs in none') },
    ],
  ])('%s', async (_, options, expected) => {
    const { failure, controlPlane } = await step(options)
    expect(failure).toMatchObject(expected)
    expect(controlPlane.patchDeployment).not.toHaveBeenCalled()
  })

  it('about GitHub, when that does not answer', async () => {
    const request = httpFailure(502, { path: '/repos/acme/agents/git/ref/tags/v1', attempts: 3 })
    const failure = new GithubFailure({ operation: 'reading a tag', request, permission: null })
    const result = await step({ github: githubOf({ commitOfTag: () => Promise.reject(failure) }) })
    expect(result.failure).toMatchObject({
      code: 'E_UNAVAILABLE',
      message: expect.stringMatching(/^Looking for the proof failed: GitHub: reading a tag failed: GET .* answered 502/),
      tried: 'GET /repos/acme/agents/git/ref/tags/v1 was sent 3 times. Nothing was changed.',
      next: 'Check github-token, and https://www.githubstatus.com; then run the step again.',
      cause: failure,
    })
  })

  it('about a fault that is none of GitHub: the fault itself', async () => {
    const result = await step({ github: githubOf({ commitOfTag: () => Promise.reject(new TypeError('a fault')) }) })
    expect(result.failure).toMatchObject({ code: 'E_PROTOCOL', message: 'internal error: TypeError: a fault', tried: undefined })
  })
})

describe('what a promotion asks for', () => {
  it('is the tag and the revision that serves, within the timeout; nothing listens afterwards', async () => {
    const signals: AbortSignal[] = []
    const commitOfTag = vi.fn<Github['commitOfTag']>(async (_, signal) => {
      signals.push(signal)
      return COMMIT
    })
    const { ended, abort } = await step({ github: githubOf({ commitOfTag }), wanted: { timeoutMs: 1_200_000 } })
    expect([ended, commitOfTag.mock.calls.map(([tag]) => tag)]).toEqual(['deployed', ['refs/tags/v1']])
    expect(deadlineOf(signals[0]!)).toBe(Date.UTC(2026, 0, 1) + 1_200_000)
    abort()
    expect(signals[0]?.aborted).toBe(false)
  })

  it('is no tag where an image is named', async () => {
    const commitOfTag = vi.fn<Github['commitOfTag']>(async () => COMMIT)
    const { lines, controlPlane, failure } = await imageStep({ imageUri: DIGEST }, githubOf({ commitOfTag }))
    expect(failure).toBeUndefined()
    expect(commitOfTag).not.toHaveBeenCalled()
    expect(lines[1]).toMatch(`Promoting ${DIGEST}: the revision ${PROVEN} of 'staging' serves it, and passed its smoke test at `)
    expect(vi.mocked(controlPlane.patchDeployment).mock.calls[0]?.[0].body).toEqual({
      source_revision_config: { image_uri: DIGEST },
    })
  })

  it('is two deployments by their ids, where the workflow gives ids', async () => {
    const before = [staging(), deployment()]
    const after = deployment({ latest_revision_id: NEW_REVISION_ID, active_revision_id: NEW_REVISION_ID })
    const getDeployment = vi.fn<ControlPlane['getDeployment']>(async () => before.shift() ?? after)
    const { ended, controlPlane } = await step({
      wanted: { promote: { from: { id: STAGING_ID }, tag: 'refs/tags/v1' }, target: { id: DEPLOYMENT_ID } },
      plane: { getDeployment },
    })
    expect(ended).toBe('deployed')
    expect(getDeployment.mock.calls.map(([id]) => id).slice(0, 2)).toEqual([STAGING_ID, DEPLOYMENT_ID])
    expect(controlPlane.patchDeployment).toHaveBeenCalledWith(expect.objectContaining({ id: DEPLOYMENT_ID }))
  })

  it('by an id that no deployment has fails with the words of the service', async () => {
    const { failure } = await step({
      wanted: { promote: { from: { id: STAGING_ID }, tag: 'refs/tags/v1' } },
      plane: { getDeployment: () => Promise.reject(httpFailure(404)) },
    })
    expect(failure).toMatchObject({
      code: 'E_NOT_FOUND',
      message: `Reading the deployment ${STAGING_ID} failed: GET /v2/deployments answered 404.`,
    })
  })

  /** A promotion of what staging runs, which is an image, to a deployment of images. */
  async function imageStep(wish: { imageUri?: string; tag?: string }, github = githubOf()) {
    const ofImage = { source: 'external_docker', source_config: {}, source_revision_config: { image_uri: DIGEST } }
    const proven = deployment({
      ...ofImage,
      id: STAGING_ID,
      name: 'staging',
      latest_revision_id: PROVEN,
      active_revision_id: PROVEN,
    })
    return await step({
      github,
      wanted: { promote: { from: { name: 'staging' }, ...wish } },
      plane: {
        findDeploymentByName: async (name) => (name === 'staging' ? proven : deployment(ofImage)),
        getRevision: async ({ revisionId: id }) => revision('DEPLOYED', { id, source_revision_config: { image_uri: DIGEST } }),
      },
    })
  }

  it('creates a target of an image without what only git has', async () => {
    const integration = '11111111-1111-4111-8111-111111111111'
    const proven = deployment({
      id: STAGING_ID,
      name: 'staging',
      source: 'external_docker',
      source_config: { integration_id: integration },
      latest_revision_id: PROVEN,
      active_revision_id: PROVEN,
    })
    const { controlPlane } = await step({
      wanted: { promote: { from: { name: 'staging' }, imageUri: DIGEST } },
      plane: {
        findDeploymentByName: async (name) => (name === 'staging' ? proven : null),
        getRevision: async ({ revisionId: id }) => revision('DEPLOYED', { id, source_revision_config: { image_uri: DIGEST } }),
      },
    })
    const body = vi.mocked(controlPlane.createDeployment).mock.calls[0]?.[0]
    expect(body).toMatchObject({ source: 'external_docker', source_revision_config: { image_uri: DIGEST } })
    expect(body?.source_config).not.toHaveProperty('integration_id')
    expect(body?.source_config).not.toHaveProperty('build_on_push')
  })

  it('does not compare the integrations of two deployments of images', async () => {
    const ofImage = (name: string, integration: string) => ({
      name,
      source: 'external_docker',
      source_config: { integration_id: integration },
      source_revision_config: { image_uri: DIGEST },
    })
    const serving = { id: STAGING_ID, latest_revision_id: PROVEN, active_revision_id: PROVEN }
    const { ended } = await step({
      wanted: { promote: { from: { name: 'staging' }, imageUri: DIGEST } },
      plane: {
        findDeploymentByName: async (name) =>
          name === 'staging'
            ? deployment({ ...ofImage(name, '11111111-1111-4111-8111-111111111111'), ...serving })
            : deployment(ofImage(name, '22222222-2222-4222-8222-222222222222')),
        getRevision: async ({ revisionId: id }) => revision('DEPLOYED', { id, source_revision_config: { image_uri: DIGEST } }),
      },
    })
    expect(ended).toBe('deployed')
  })

  it('creates a target of git without an integration where none is known', async () => {
    const { controlPlane } = await step({
      plane: { findDeploymentByName: async (name) => (name === 'staging' ? staging() : null) },
    })
    expect(vi.mocked(controlPlane.createDeployment).mock.calls[0]?.[0].source_config).not.toHaveProperty('integration_id')
  })

  it.each([
    ['the one of the proven revision', 'git_host', 'apps/agent.json'],
    ['its own where an image is promoted', 'external_docker', 'own.json'],
  ])('reads the graphs for the smoke test from a configuration: %s', async (_, source, expected) => {
    const read: string[] = []
    const isImage = source === 'external_docker'
    const config = isImage
      ? { image_uri: DIGEST }
      : { repo_ref: 'refs/tags/v1', graph_config_path: 'apps/agent.json', repo_commit_sha: COMMIT }
    const ofSource = isImage ? { source, source_config: {} } : {}
    const deps = fakeDeps({
      findDeploymentByName: async (name) =>
        deployment({
          ...ofSource,
          ...(name === 'staging' ? { id: STAGING_ID, name, latest_revision_id: PROVEN, active_revision_id: PROVEN } : {}),
        }),
      getRevision: async ({ revisionId: id }) => revision('DEPLOYED', { id, source_revision_config: config }),
    })
    const smokeTest = { input: {}, streamMode: 'updates', timeoutMs: 1000, configPath: 'own.json' } as const
    const wanted: PromoteInputs = {
      ...inputs({ smokeTest, source: { kind: 'external_docker', imageUri: DIGEST } }),
      mode: 'promote',
      promote: { from: { name: 'staging' }, ...(isImage ? { imageUri: DIGEST } : { tag: 'refs/tags/v1' }) },
    }
    const stop = new Error('that is enough')
    const checkout = (path: string) => {
      read.push(path)
      throw stop
    }
    const agentServer = () => ({}) as AgentServer
    await expect(promote(wanted, { ...deps, github: githubOf(), checkout, agentServer })).rejects.toBe(stop)
    expect(read).toEqual([expected])
  })
})
