import { describe, expect, it } from 'vitest'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import { setAside } from '../../../src/action/rollback/aside.ts'
import type { LastGood } from '../../../src/action/rollback/last-good.ts'
import { differentCommit, imageDoubt, secretsSentence, unfinished } from '../../../src/action/rollback/sentences.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID } from '../support/answers.ts'
import { fakeDeps } from '../support/deps.ts'

const secret = (name: string) => ({ name, value: 'hunter2' })

function good(source: Partial<LastGood['source']>): LastGood {
  const unknown = { repo_ref: null, graph_config_path: null, image_uri: null, repo_commit_sha: null }
  return { revisionId: 'good', source: { ...unknown, ...source }, buildOnPush: null }
}

describe('what becomes of secrets', () => {
  it('is nothing where none were sent', () => {
    for (const { kept, of } of [secretsSentence({}), secretsSentence({ secrets: [] })])
      expect([kept, of('updated'), of('redeployed')]).toEqual(['', '', ''])
  })

  it('is said of one', () => {
    const { kept, of } = secretsSentence({ secrets: [secret('MODEL_KEY')] })
    expect(kept).toBe(' MODEL_KEY keeps what this step has set: its earlier value cannot be read back.')
    expect(of('updated')).toBe(kept)
    expect(of('redeployed')).toBe(
      ' Whether MODEL_KEY has its earlier value again is for the control plane: a redeploy takes the environment of the revision.',
    )
  })

  it('is said of several', () => {
    const { kept, of } = secretsSentence({ secrets: [secret('A'), secret('B')] })
    expect(kept).toBe(' A, B keep what this step has set: their earlier values cannot be read back.')
    expect(of('updated')).toBe(kept)
    expect(of('redeployed')).toBe(
      ' Whether A, B have their earlier values again is for the control plane: a redeploy takes the environment of the revision.',
    )
  })
})

describe('the commit that was brought back', () => {
  const untold = 'the control plane does not tell which commit good was built from, and main may have moved meanwhile.'
  const moved = (now: string) => `good was built from aaa, and what serves now from ${now}, because main has moved meanwhile.`

  it.each<[string, Partial<LastGood['source']>, string | undefined, 'redeployed' | 'updated', string | undefined]>([
    ['of an image', { image_uri: 'agent:1' }, undefined, 'updated', undefined],
    ['that nobody told, by a redeploy', { repo_ref: 'main' }, 'bbb', 'redeployed', undefined],
    ['that nobody told, by an update', { repo_ref: 'main' }, 'bbb', 'updated', untold],
    ['that is the same', { repo_ref: 'main', repo_commit_sha: 'aaa' }, 'aaa', 'updated', undefined],
    ['that is the same in capitals', { repo_ref: 'main', repo_commit_sha: 'aaA' }, 'AAa', 'redeployed', undefined],
    ['that is another', { repo_ref: 'main', repo_commit_sha: 'aaa' }, 'bbb', 'redeployed', moved('bbb')],
    [
      'that is not told now',
      { repo_ref: 'main', repo_commit_sha: 'aaa' },
      undefined,
      'updated',
      moved('a commit that the control plane does not tell'),
    ],
  ])('%s', (_, source, commit, how, expected) => {
    expect(differentCommit({ good: good(source), commit, how })).toBe(expected)
  })
})

describe('the image that was brought back', () => {
  it.each<[string, Partial<LastGood['source']>, string]>([
    [
      'is doubted by a tag',
      { image_uri: 'agent:1' },
      ' The image is named by a tag, agent:1: whether it is still the same one cannot be told.',
    ],
    ['is not by a digest', { image_uri: `agent@sha256:${'a'.repeat(64)}` }, ''],
    ['is not where git is the source', { repo_ref: 'main', image_uri: 'agent:1' }, ''],
    ['is not where it is unknown', {}, ''],
  ])('%s', (_, source, expected) => {
    expect(imageDoubt(good(source))).toBe(expected)
  })
})

async function told({
  asked = false,
  revisionId,
  failure = new ActionFailure({ code: 'E_BUILD_FAILED', happened: 'The build failed.' }),
  active,
  plane = {},
  cancelled = false,
}: {
  asked?: boolean
  revisionId?: string
  failure?: ActionFailure
  active?: string | null | undefined
  plane?: Partial<ControlPlane>
  cancelled?: boolean
}): Promise<string> {
  const deps = fakeDeps({ getDeployment: async () => deployment({ active_revision_id: active }), ...plane })
  const aside = setAside(deps)
  aside.deps.journal.set('revision-id', revisionId)
  if (cancelled) deps.abort()
  return await unfinished({ second: failure, aside, asked, deploymentId: DEPLOYMENT_ID, deps })
}

const lost = requestFailure({ method: 'POST', ambiguous: true })
const definite = httpFailure(503)
const failureOf = (cause: unknown) => new ActionFailure({ code: 'E_UNAVAILABLE', happened: 'No answer', cause })
const ID = '00000000-0000-4000-8000-00000000000c'

describe('a rollback that did not come to its end', () => {
  it.each<[string, Parameters<typeof told>[0], string]>([
    ['cancelled early', { cancelled: true }, 'The step was cancelled before the rollback had begun.'],
    [
      'cancelled while it was asked for',
      { cancelled: true, asked: true },
      'The step was cancelled before the rollback was answered: it may have begun, and goes on by itself then.',
    ],
    [
      'cancelled later',
      { cancelled: true, asked: true, revisionId: ID },
      `The step was cancelled during the rollback: the revision ${ID} goes on by itself, whatever on-cancel says.`,
    ],
    [
      'with a revision',
      { asked: true, revisionId: ID, active: ID },
      `The rollback failed as well (revision ${ID}): E_BUILD_FAILED: The build failed. The revision ${ID} serves.`,
    ],
    ['without one', { active: null }, 'The rollback failed as well: E_BUILD_FAILED: The build failed. No revision serves.'],
    [
      'with words that end in no full stop',
      { failure: failureOf(definite), asked: true, active: undefined },
      'The rollback failed as well: E_UNAVAILABLE: No answer. The control plane does not tell which revision serves.',
    ],
    [
      'whose answer was lost',
      { failure: failureOf(lost), asked: true, active: null },
      'The rollback failed as well: E_UNAVAILABLE: No answer. It may have begun all the same. No revision serves.',
    ],
    [
      'whose answer was lost before it was asked for',
      { failure: failureOf(lost), active: null },
      'The rollback failed as well: E_UNAVAILABLE: No answer. No revision serves.',
    ],
    [
      'where the control plane answers no more',
      { plane: { getDeployment: async () => Promise.reject(definite) } },
      'The rollback failed as well: E_BUILD_FAILED: The build failed. Which revision serves could not be found out.',
    ],
  ])('%s', async (_, options, expected) => {
    expect(await told(options)).toBe(expected)
  })
})
