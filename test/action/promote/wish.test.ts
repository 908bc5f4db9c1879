import { describe, expect, it } from 'vitest'
import { parseStepInputs, type RawInputs } from '../../../src/action/inputs.ts'
import { digestOf } from '../../../src/action/promote/wish.ts'
import { INPUT_NAMES, inputSpec } from '../../../src/action/registry.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { DEPLOYMENT_ID, DIGEST } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'

const release = githubContext({
  eventName: 'release',
  ref: 'refs/tags/v2.0.0',
  payload: { action: 'published', release: { tag_name: 'v2.0.0' } },
})

function parse(changes: Partial<RawInputs> = {}, context = release) {
  const defaults = Object.fromEntries(INPUT_NAMES.map((name) => [name, inputSpec(name).default])) as RawInputs
  const given = { 'api-key': 'key-of-the-test', 'deployment-name': 'production', mode: 'promote', 'promote-from': 'staging' }
  return parseStepInputs({ ...defaults, 'github-token': '', ...given, ...changes }, context, 0)
}

function refusal(changes: Partial<RawInputs>, context = release): string {
  try {
    parse(changes, context)
  } catch (error) {
    if (error instanceof ActionFailure && error.code === 'E_INPUT') return error.message
    throw error
  }
  throw new Error('the inputs were accepted')
}

describe('the inputs of a promotion', () => {
  it('take the tag from a release, from the push of a tag, or from tag', () => {
    expect(parse()).toMatchObject({ mode: 'promote', promote: { from: { name: 'staging' }, tag: 'refs/tags/v2.0.0' } })
    const push = githubContext({ ref: 'refs/tags/v1.2.3', payload: { head_commit: { id: 'a'.repeat(40) } } })
    expect(parse({}, push)).toMatchObject({ promote: { tag: 'refs/tags/v1.2.3' } })
    const dispatch = githubContext({ eventName: 'workflow_dispatch' })
    expect(parse({ tag: 'v3' }, dispatch)).toMatchObject({ promote: { tag: 'refs/tags/v3' } })
    expect(refusal({}, dispatch)).toContain('names no tag')
  })

  it('take a deployment by its id', () => {
    expect(parse({ 'promote-from': DEPLOYMENT_ID.toUpperCase() })).toMatchObject({ promote: { from: { id: DEPLOYMENT_ID } } })
  })

  it('take an image by its digest only', () => {
    const dispatch = githubContext({ eventName: 'workflow_dispatch' })
    expect(parse({ 'image-uri': DIGEST }, dispatch)).toMatchObject({ promote: { imageUri: DIGEST } })
    expect(refusal({ 'image-uri': 'registry.example.com/team/agent:1.0' })).toContain('names no digest')
    expect(digestOf(DIGEST)).toBe(`sha256:${'a'.repeat(64)}`)
  })

  it.each<[string, Partial<RawInputs>, string]>([
    ['no promote-from', { 'promote-from': '' }, 'promote-from is empty'],
    ['the target itself', { 'promote-from': 'production' }, 'is the deployment that is to be changed'],
    [
      'the target itself by id',
      { 'deployment-name': '', 'deployment-id': DEPLOYMENT_ID, 'promote-from': DEPLOYMENT_ID },
      'to be changed',
    ],
    ['a branch', { 'repo-ref': 'main' }, 'repo-ref is set'],
    ['a repository', { 'repo-url': 'https://github.com/acme/other' }, 'repo-url is set'],
    ['a configuration', { 'config-path': 'other.json' }, 'config-path is set'],
    ['no wait', { wait: 'false' }, 'wait is false'],
    ['no wait, and a rollback', { wait: 'false', 'rollback-on-failure': 'true' }, 'contradict each other'],
    ['builds of its own', { 'build-on-push': 'true' }, 'build-on-push'],
    ['promote-from without the mode', { mode: 'deploy' }, 'nothing would be promoted'],
    [
      'a deployment that cannot be',
      { 'promote-from': 'not a name' },
      'is not a name of a deployment; accepted: the name or the id',
    ],
  ])('refuse %s', (_, changes, says) => {
    expect(refusal(changes)).toContain(says)
  })
})
