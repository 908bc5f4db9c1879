import { describe, expect, it } from 'vitest'
import { METADATA, says, startAgentDouble, steps } from '../support/agent-double.ts'
import { workflowEvent } from '../support/events.ts'
import { type GithubDouble, startGithubDouble } from '../support/github-double.ts'
import { DEPLOYED, failed, type Scene, withScene } from '../support/scene.ts'

const imageOf = (digit: string, name = 'registry.example.com/team/agent') => `${name}@sha256:${digit.repeat(64)}`
const TEST = {
  'smoke-test-input': '{"messages": []}',
  'smoke-test-assistant': 'agent',
  'smoke-test-expect': '^pong$',
}
const GOOD = steps.stream(METADATA, says('pong'))
const BAD = steps.stream(METADATA, says('no idea'))
const COMMIT = '6113728f27ae82c7b1a177c8d03f9e96e0adf246'
const OTHER_COMMIT = '0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c'

type Releases = Scene & {
  github: GithubDouble
  stage: (image: string) => ReturnType<Scene['run']>
  /** `tag` is one that GitHub knows. */
  promote: (tag: string, inputs?: Readonly<Record<string, string>>) => ReturnType<Scene['run']>
  /** What the control plane was asked to run in production, one after the other. */
  production: () => unknown[]
}

/** An installation without git: images only, and, as older ones, without a way to redeploy a revision. */
async function withReleases(runs: Parameters<typeof startAgentDouble>[0]['runs'], body: (scene: Releases) => Promise<void>) {
  const [agent, github] = await Promise.all([startAgentDouble({ runs }), startGithubDouble()])
  const rewrite = (answer: unknown): unknown =>
    typeof answer === 'object' && answer !== null && 'url' in answer && answer.url !== null
      ? { ...answer, url: agent.url }
      : answer
  const env = github.env
  try {
    await withScene({ script: [['DEPLOYING'], ['DEPLOYED']], rewrite, without: ['redeploy'] }, async (scene) => {
      const push = workflowEvent('push')
      const common = { secrets: '', comment: 'false', ...TEST }
      await body({
        ...scene,
        github,
        stage: (image) =>
          scene.run({
            env,
            event: push,
            with: { ...common, 'deployment-name': 'staging', 'image-uri': image, environment: 'staging' },
          }),
        promote: (tag, inputs = {}) => {
          const release = workflowEvent('release')
          const payload = { ...(release.payload as object), release: { tag_name: tag } }
          const event = { ...release, ref: `refs/tags/${tag}`, payload }
          const wanted = {
            mode: 'promote',
            'promote-from': 'staging',
            'deployment-name': 'production',
            environment: 'production',
          }
          return scene.run({ env, event, with: { ...common, ...wanted, ...inputs } })
        },
        production: () =>
          scene.plane.deployments
            .filter(({ name }) => name === 'production')
            .flatMap(({ revisions }) => revisions.map(({ config }) => config['image_uri'])),
      })
    })
  } finally {
    await Promise.all([agent.stop(), github.stop()])
  }
}

describe.concurrent('an image', { timeout: 120_000 }, () => {
  it('is promoted by its digest, for the tag of the commit whose workflow deployed it', () =>
    withReleases([GOOD], async ({ github, stage, promote, production, flaws }) => {
      github.addTag('v1.0.0', COMMIT, { annotated: true })
      github.addTag('v0.9.0', OTHER_COMMIT)
      expect(await flaws(await stage(imageOf('a')), DEPLOYED)).toEqual([])
      const other = await promote('v0.9.0')
      expect(await flaws(other, failed('E_CONFLICT', `live: ${COMMIT}`, `wanted: ${OTHER_COMMIT}`))).toEqual([])
      expect(production()).toEqual([])
      expect(await flaws(await promote('v1.0.0'), DEPLOYED)).toEqual([])
      expect(production()).toEqual([imageOf('a')])
      // The same image, as the registry of production calls it.
      const elsewhere = imageOf('a', 'registry.example.org/release/agent')
      expect(await flaws(await promote('v0.9.0', { 'image-uri': elsewhere }), DEPLOYED)).toEqual([])
      expect(production()).toEqual([imageOf('a'), elsewhere])
      const unproven = await promote('v1.0.0', { 'image-uri': imageOf('b') })
      const says = [`live: sha256:${'a'.repeat(64)}`, `wanted: sha256:${'b'.repeat(64)}`]
      expect(await flaws(unproven, failed('E_CONFLICT', ...says))).toEqual([])
      expect(production()).toHaveLength(2)
    }))

  it('by a name that may move is refused, tested or not', () =>
    withReleases([GOOD], async ({ github, stage, promote, production, flaws }) => {
      github.addTag('v1.0.0', COMMIT)
      expect(await flaws(await stage('registry.example.com/team/agent:1.0'), DEPLOYED)).toEqual([])
      expect(await flaws(await promote('v1.0.0'), failed('E_CONFLICT', 'names no digest', 'name@sha256'))).toEqual([])
      expect(production()).toEqual([])
    }))

  it('that fails in production gives way to the one before, by an update where nothing can be redeployed', () =>
    withReleases([GOOD, GOOD, GOOD, BAD, GOOD], async ({ github, stage, promote, production, flaws }) => {
      github.addTag('v1.0.0', COMMIT)
      await stage(imageOf('a'))
      expect(await flaws(await promote('v1.0.0'), DEPLOYED)).toEqual([])
      await stage(imageOf('b'))
      const result = await promote('v1.0.0', { 'rollback-on-failure': 'true' })
      const says = ['The agent said: no idea', 'Rolled back', 'updated from']
      expect(await flaws(result, { status: 'rolled-back', code: 'E_SMOKE_TEST', says })).toEqual([])
      expect(production()).toEqual([imageOf('a'), imageOf('b'), imageOf('a')])
      expect(result.outputs).toMatchObject({ 'image-uri': imageOf('a'), 'smoke-test': 'passed' })
      const record = github.state.deployments.findLast(({ environment }) => environment === 'production')
      const description = `E_SMOKE_TEST, smoke test failed; rolled back to revision ${result.outputs['revision-id']}`
      expect(record?.statuses.at(-1)).toMatchObject({ state: 'failure', description })
    }))
})
