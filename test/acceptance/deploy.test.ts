import { describe, expect, it } from 'vitest'
import { DOUBLE_COMMIT, type ScriptStep } from '../support/control-plane-model.ts'
import { workflowEvent, type EventName } from '../support/events.ts'
import { readable } from '../support/readable.ts'
import { AGENT_SECRET, DEPLOYED, failed, withScene } from '../support/scene.ts'

const QUICK: readonly ScriptStep[] = [['BUILDING'], ['DEPLOYED']]
const REPOSITORY = 'https://github.com/acme/agents'
const LIVE = { repo_url: REPOSITORY, build_on_push: false }
const LIVE_REVISION = { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: DOUBLE_COMMIT }
const UUID = /^[0-9a-f-]{36}$/

describe.concurrent('a deployment that does not exist yet', () => {
  it('is created from git, followed through every status, and described', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const result = await run({ event: workflowEvent('push'), timeoutMs: 40_000 })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      const [created] = plane.requestsOf('POST')
      expect(created?.body).toMatchObject({
        name: 'echo-agent',
        source: 'git_host',
        source_config: { repo_url: REPOSITORY, build_on_push: false },
        source_revision_config: { repo_ref: 'feature/new-prompt', graph_config_path: 'langgraph.json' },
        secrets: [{ name: 'MODEL_KEY', value: AGENT_SECRET }],
      })
      expect(plane.requestsOf('POST')).toHaveLength(1)
      expect(result.outputs).toMatchObject({
        'deployment-id': plane.deployments[0]?.id,
        'deployment-name': 'echo-agent',
        'deployment-url': expect.stringContaining('/agents/echo-agent'),
        created: 'true',
        'revision-id': plane.deployments[0]?.revisions[0]?.id,
        'revision-status': 'DEPLOYED',
        'commit-sha': DOUBLE_COMMIT,
      })
      for (const status of ['QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED']) {
        expect(result.log.split('\n').filter((line) => line.startsWith(`${status} `))).toHaveLength(1)
      }
      expect(readable(result.summary)).toContain('echo-agent')
      expect(readable(result.summary)).toContain(`${REPOSITORY}/commit/${DOUBLE_COMMIT}`)
      expect(result.summary).toMatch(/```mermaid\s+gantt/)
    }))

  it('is created from an image', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      const image = `registry.example.com/team/agent@sha256:${'a'.repeat(64)}`
      const result = await run({ with: { 'image-uri': image } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('POST')[0]?.body).toMatchObject({
        source: 'external_docker', source_revision_config: { image_uri: image },
      })
      expect(result.outputs).toMatchObject({ created: 'true', 'image-uri': image })
    }))

  it('is not created when it was named by its id', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const id = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'
      const result = await run({ with: { 'deployment-name': '', 'deployment-id': id } })
      expect(await flaws(result, failed('E_NOT_FOUND', id))).toEqual([])
      expect(plane.requestsOf('POST')).toEqual([])
    }))

  it('is created beside others whose names only begin like its own, wherever they are in the list', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      for (let index = 0; index < 130; index++) plane.addDeployment({ name: `echo-agent-${index}` })
      const result = await run()
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(result.outputs['created']).toBe('true')
    }))
})

describe.concurrent('a deployment that exists', () => {
  it('is found by its exact name behind the first page, and gets a new revision', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      for (let index = 0; index < 105; index++) plane.addDeployment({ name: `echo-agent-${index}` })
      const deployment = plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      const before = deployment.activeRevisionId
      const result = await run({ event: workflowEvent('push') })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('POST')).toEqual([])
      expect(plane.requestsOf('PATCH')).toHaveLength(1)
      expect(plane.requestsOf('PATCH')[0]?.body).toEqual({
        source_revision_config: { repo_ref: 'feature/new-prompt', graph_config_path: 'langgraph.json' },
        secrets: [{ name: 'MODEL_KEY', value: AGENT_SECRET }],
      })
      expect(result.outputs).toMatchObject({ created: 'false', 'previous-revision-id': before, 'deployment-id': deployment.id })
      expect(result.outputs['revision-id']).toMatch(UUID)
      expect(result.outputs['revision-id']).not.toBe(before)
    }))

  it('is updated by its id, without its name', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      const { id } = plane.addDeployment({ name: 'another-name', sourceConfig: LIVE, config: LIVE_REVISION })
      const result = await run({ with: { 'deployment-name': '', 'deployment-id': id, secrets: '' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(result.outputs).toMatchObject({ 'deployment-name': 'another-name', created: 'false' })
      expect(plane.requestsOf('PATCH')[0]?.body).not.toHaveProperty('secrets')
    }))

  it('gets a tag with build_on_push off, whatever it was', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      plane.addDeployment({ name: 'echo-agent', sourceConfig: { ...LIVE, build_on_push: true }, config: LIVE_REVISION })
      const result = await run({ with: { tag: 'v1.2.3' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('PATCH')[0]?.body).toMatchObject({
        source_config: { build_on_push: false }, source_revision_config: { repo_ref: 'refs/tags/v1.2.3' },
      })
    }))

  it.each([
    ['repo_url', { 'repo-url': 'https://github.com/acme/other' }, [REPOSITORY, 'https://github.com/acme/other']],
    ['deployment_type', { 'deployment-type': 'prod' }, ['dev', 'prod']],
    ['source', { 'image-uri': 'registry.example.com/agent:1' }, ['git_host', 'external_docker']],
  ])('refuses another %s with both values, and sends nothing', (field, inputs, values) =>
    withScene({}, async ({ plane, run, flaws }) => {
      plane.addDeployment({ name: 'echo-agent', sourceConfig: { ...LIVE, deployment_type: 'dev' }, config: LIVE_REVISION })
      const result = await run({ with: inputs })
      expect(await flaws(result, failed('E_CONFLICT', field, ...values))).toEqual([])
      expect(plane.requests.filter(({ method }) => method !== 'GET')).toEqual([])
    }))

  it('refuses a repository for a deployment that runs an image', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const config = { image_uri: 'registry.example.com/agent:1' }
      plane.addDeployment({ name: 'echo-agent', source: 'external_docker', config })
      const result = await run()
      const says = ['external_docker', 'git_host']
      expect(await flaws(result, failed('E_CONFLICT', ...says))).toEqual([])
      expect(plane.requestsOf('PATCH')).toEqual([])
    }))

  it('is compared and left alone by a dry run', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      const result = await run({ with: { 'dry-run': 'true', 'repo-ref': 'next' } })
      expect(await flaws(result, { status: 'planned' })).toEqual([])
      expect(plane.requests.filter(({ method }) => method !== 'GET')).toEqual([])
      expect(result.log).toMatch(/repo_ref.*main.*next/)
    }))
})

describe.concurrent('the ref', () => {
  it.each([
    ['push', 'feature/new-prompt', {}],
    ['push-tag', 'refs/tags/v1.2.3', {}],
    ['release', 'refs/tags/v2.0.0-rc.1', {}],
    ['pull-request', 'feature/new-prompt', {}],
    ['workflow-dispatch', 'main', {}],
    ['push', 'release/1.x', { 'repo-ref': 'release/1.x' }],
    ['push', 'refs/tags/v9', { tag: 'v9' }],
    ['push', 'refs/tags/v9', { tag: 'refs/tags/v9' }],
  ] satisfies [EventName, string, Record<string, string>][])('of the event %s is %s with %j', (event, ref, inputs) =>
    withScene({ script: [['DEPLOYED']] }, async ({ plane, run, flaws }) => {
      const result = await run({ event: workflowEvent(event), with: inputs })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('POST')[0]?.body).toMatchObject({
        source_revision_config: { repo_ref: ref }, source_config: { repo_url: REPOSITORY, build_on_push: false },
      })
    }))
})

describe.concurrent('skip-unchanged', () => {
  const skip = { 'skip-unchanged': 'true', secrets: '' }
  const event = { ...workflowEvent('push'), ref: 'refs/heads/main', payload: {}, sha: DOUBLE_COMMIT }

  it('makes no revision when the live one has this commit', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const { activeRevisionId } = plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      const result = await run({ with: skip, event })
      expect(await flaws(result, { status: 'unchanged' })).toEqual([])
      expect(result.outputs).toMatchObject({ 'revision-id': activeRevisionId, 'commit-sha': DOUBLE_COMMIT })
      expect(plane.requestsOf('PATCH')).toEqual([])
    }))

  it.each([
    ['another commit', { ...event, sha: 'b'.repeat(40) }, skip],
    ['another configuration file', event, { ...skip, 'config-path': 'agents/langgraph.json' }],
    ['another ref', { ...event, ref: 'refs/heads/next' }, skip],
  ])('deploys %s', (_, workflow, inputs) =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      const result = await run({ with: inputs, event: workflow })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('PATCH')).toHaveLength(1)
    }))

  it('deploys when the newest revision failed but an older one of this commit serves under another ref', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      plane.addRevision(deployment, 'BUILDING')
      const result = await run({ with: skip, event })
      expect(await flaws(result, DEPLOYED)).toEqual([])
    }))
})

describe.concurrent('the wait', () => {
  it('is left out with wait: false', () =>
    withScene({ script: [['BUILDING']] }, async ({ plane, run, flaws }) => {
      const result = await run({ with: { wait: 'false' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(plane.requestsOf('GET', /revisions\//).length).toBeLessThanOrEqual(1)
      expect(result.outputs['revision-id']).toMatch(UUID)
    }))

  it('gives the ids before it begins', () =>
    withScene({ script: [['BUILDING']] }, async ({ plane, run }) => {
      const waiting = () => plane.requestsOf('GET', /revisions\//).length > 0
      const result = await run({ signals: [{ signal: 'SIGKILL', when: waiting }] })
      expect(result).toMatchObject({ signal: 'SIGKILL', conclusion: 'failure' })
      expect(result.outputs).toMatchObject({
        'deployment-id': plane.deployments[0]?.id, 'revision-id': plane.deployments[0]?.revisions[0]?.id, created: 'true',
      })
      // Whatever killed it, nobody may take the step for a green one.
      expect(['deployed', 'unchanged', 'planned']).not.toContain(result.outputs['status'])
    }))

  it('reports unknown statuses once and waits on', () =>
    withScene({ script: [['UNKNOWN'], ['ROLLING_OUT', { polls: 2 }], ['UNKNOWN', { polls: 2 }], ['Deployed', { polls: 2 }]] },
      async ({ run, flaws }) => {
        const result = await run({ timeoutMs: 40_000 })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(result.log.match(/does not know the status/g)).toHaveLength(1)
        expect(result.log.match(/ROLLING_OUT is not known/g)).toHaveLength(1)
      }))

  it('follows the revision of this step, not the latest one', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      plane.scriptNext([['QUEUED'], ['SKIPPED', { polls: 3, message: 'a newer push' }]])
      const pending = run()
      await expect.poll(() => deployment.revisions.length, { timeout: 10_000 }).toBe(2)
      plane.addRevision(deployment, 'DEPLOYED')
      const result = await pending
      expect(await flaws(result, { status: 'superseded', code: 'E_SUPERSEDED', says: ['a newer push'] })).toEqual([])
    }))

  it('is superseded when another revision serves at its end', async () => {
    let onDeployed = () => {}
    const rewrite = (body: unknown) => {
      if ((body as { status?: string }).status === 'DEPLOYED') onDeployed()
      return body
    }
    await withScene({ script: QUICK, rewrite }, async ({ plane, run, flaws }) => {
      const deployment = plane.addDeployment({ name: 'echo-agent', sourceConfig: LIVE, config: LIVE_REVISION })
      onDeployed = () => void plane.addRevision(deployment, 'DEPLOYED')
      const result = await run()
      expect(await flaws(result, { status: 'superseded', code: 'E_SUPERSEDED' })).toEqual([])
    })
  })

  it('ends with a revision that somebody interrupted', () =>
    withScene({ script: [['BUILDING'], ['INTERRUPTED', { message: 'stopped by octocat' }]] }, async ({ run, flaws }) => {
      const result = await run()
      const says = ['INTERRUPTED', 'stopped by octocat']
      expect(await flaws(result, failed('E_INTERRUPTED', ...says))).toEqual([])
    }))

  it('says so when it takes longer than the timeout, and leaves the revision alone', () =>
    withScene({ script: [['BUILDING']] }, async ({ plane, run, flaws }) => {
      const result = await run({ with: { timeout: '3s' } })
      expect(await flaws(result, { status: 'timed-out', code: 'E_TIMEOUT', says: ['BUILDING'] })).toEqual([])
      expect(result.durationMs).toBeLessThan(8000)
      expect(plane.requestsOf('POST', /interruption/)).toEqual([])
    }))

  it('interrupts the revision at its timeout when asked to', () =>
    withScene({ script: [['BUILDING']] }, async ({ plane, run, flaws }) => {
      const result = await run({ with: { timeout: '3s', 'on-timeout': 'interrupt' } })
      expect(await flaws(result, { status: 'timed-out', code: 'E_TIMEOUT' })).toEqual([])
      expect(plane.requestsOf('POST', /interruption/)).toHaveLength(1)
      expect(plane.deployments[0]?.revisions[0]?.status).toBe('INTERRUPTED')
    }))

  it('says that this control plane cannot interrupt', () =>
    withScene({ script: [['BUILDING']], without: ['interruption'] }, async ({ run, flaws }) => {
      const result = await run({ with: { timeout: '2s', 'on-timeout': 'interrupt' } })
      const says = ['no way to interrupt']
      expect(await flaws(result, { status: 'timed-out', code: 'E_TIMEOUT', says })).toEqual([])
    }))
})

describe.concurrent('a revision that fails', () => {
  const lines = Array.from({ length: 40 }, (_, index) => ({ message: `log line ${index + 1}` }))

  it.each([
    ['CREATE_FAILED', 'E_CREATE_FAILED', 'build'],
    ['BUILD_FAILED', 'E_BUILD_FAILED', 'build'],
    ['DEPLOY_FAILED', 'E_DEPLOY_FAILED', 'deploy'],
    ['MIGRATION_FAILED', 'E_DEPLOY_FAILED', 'deploy'],
  ])('with %s is red with the end of its log in group, summary and annotation', (status, code, type) =>
    withScene({}, async ({ plane, run, flaws }) => {
      plane.scriptNext([['BUILDING'], [status, { message: 'the reason of it' }]], { [type]: lines })
      const result = await run()
      const says = [status, 'the reason of it', 'log line 40', 'log line 32']
      expect(await flaws(result, { status: 'failed', code, says })).toEqual([])
      const annotation = result.annotations.find(({ level }) => level === 'error')?.message ?? ''
      expect(annotation.match(/log line/g)).toHaveLength(10)
      const group = result.groups.find(({ title }) => title.includes(`${type} log`))
      expect(group?.lines.filter((line) => line.includes('log line'))).toHaveLength(40)
      expect(readable(result.summary)).toContain('log line 40')
      expect(readable(result.summary)).toContain(code)
      expect(result.outputs['revision-status']).toBe(status)
    }))

  it('keeps the end of a long log', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const long = Array.from({ length: 3000 }, (_, index) => ({ message: `step ${index + 1} ${'x'.repeat(300)}` }))
      plane.scriptNext([['BUILDING'], ['BUILD_FAILED']], { build: long })
      const result = await run()
      expect(await flaws(result, failed('E_BUILD_FAILED', 'step 3000'))).toEqual([])
      expect(readable(result.summary)).toContain('step 3000')
      expect(Buffer.byteLength(result.summary)).toBeLessThan(1024 * 1024)
    }))

  it('is as red on a control plane without logs', () =>
    withScene({ without: ['logs'], script: [['BUILDING'], ['BUILD_FAILED']] }, async ({ run, flaws }) => {
      const result = await run()
      expect(await flaws(result, failed('E_BUILD_FAILED', 'BUILD_FAILED'))).toEqual([])
    }))
})

describe.concurrent('a vendor control plane', () => {
  it('is spoken to in its own names, which the address tells', () =>
    withScene({ dialect: 'vendor', prefix: '/api-host', script: QUICK, address: 'custom_url', echoSecrets: true },
      async ({ plane, run, flaws }) => {
        const result = await run()
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(plane.requestsOf('POST')[0]?.body).toMatchObject({
          source: 'github', source_revision_config: { langgraph_config_path: 'langgraph.json' },
        })
        expect(result.outputs['deployment-url']).toContain('/agents/echo-agent')
        const second = await run({ with: { 'repo-ref': 'next' } })
        expect(await flaws(second, DEPLOYED)).toEqual([])
        const config = { langgraph_config_path: 'langgraph.json' }
        expect(plane.requestsOf('PATCH')[0]?.body).toMatchObject({ source_revision_config: config })
      }))

  it('is spoken to in its own names when the input says so, and its failures are read', () =>
    withScene({ dialect: 'vendor', script: [['BUILDING'], ['BUILD_FAILED']], address: 'none' }, async ({ run, flaws }) => {
      const result = await run({ with: { dialect: 'vendor' } })
      expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
    }))

  it('is reached with the workspace of the input', () =>
    withScene({ script: QUICK }, async ({ plane, run, flaws }) => {
      const result = await run({ with: { 'workspace-id': plane.workspaceId } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(new Set(plane.requests.map(({ headers }) => headers['x-tenant-id']))).toEqual(new Set([plane.workspaceId]))
      expect(new Set(plane.requests.map(({ headers }) => headers['x-api-key']))).toEqual(new Set([plane.apiKey]))
    }))
})

describe.concurrent('the job summary', () => {
  it('is left out with summary: false', () =>
    withScene({ script: QUICK }, async ({ run, flaws }) => {
      const result = await run({ with: { summary: 'false' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(result.summary).toBe('')
    }))
})
