import { describe, expect, it } from 'vitest'
import { parseStepInputs, type RawInputs } from '../../../src/action/inputs.ts'
import type { InputProblem } from '../../../src/action/parse/problem.ts'
import { digestOf, promoteOf } from '../../../src/action/promote/wish.ts'
import { DEPLOYMENT_ID, DIGEST } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'
import { DEFAULT_INPUTS, EMPTY_INPUTS, refusal } from '../support/inputs.ts'

const release = githubContext({
  eventName: 'release',
  ref: 'refs/tags/v2.0.0',
  payload: { action: 'published', release: { tag_name: 'v2.0.0' } },
})

function parse(changes: Partial<RawInputs> = {}, context = release) {
  const given = { 'deployment-name': 'production', mode: 'promote', 'promote-from': 'staging' }
  return parseStepInputs({ ...DEFAULT_INPUTS, ...given, ...changes }, context, 0)
}

const refused = (changes: Partial<RawInputs>, context = release): string => refusal(() => parse(changes, context))

describe('the inputs of a promotion', () => {
  it('take the tag from a release, from the push of a tag, or from tag', () => {
    expect(parse()).toMatchObject({ mode: 'promote', promote: { from: { name: 'staging' }, tag: 'refs/tags/v2.0.0' } })
    const push = githubContext({ ref: 'refs/tags/v1.2.3', payload: { head_commit: { id: 'a'.repeat(40) } } })
    expect(parse({}, push)).toMatchObject({ promote: { tag: 'refs/tags/v1.2.3' } })
    const dispatch = githubContext({ eventName: 'workflow_dispatch' })
    expect(parse({ tag: 'v3' }, dispatch)).toMatchObject({ promote: { tag: 'refs/tags/v3' } })
    expect(refused({}, dispatch)).toContain('names no tag')
  })

  it('take a deployment by its id', () => {
    expect(parse({ 'promote-from': DEPLOYMENT_ID.toUpperCase() })).toMatchObject({ promote: { from: { id: DEPLOYMENT_ID } } })
  })

  it('take an image by its digest only', () => {
    const dispatch = githubContext({ eventName: 'workflow_dispatch' })
    expect(parse({ 'image-uri': DIGEST }, dispatch)).toMatchObject({ promote: { imageUri: DIGEST } })
    expect(refused({ 'image-uri': 'registry.example.com/team/agent:1.0' })).toContain('names no digest')
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
    expect(refused(changes)).toContain(says)
  })
})

describe('what is wrong with the inputs of a promotion', () => {
  const from = { name: 'staging' }
  const branch = githubContext({ eventName: 'workflow_dispatch' })

  /** `raw` is what the workflow says; `fields` is what could be read of it. */
  function wished(
    raw: Partial<RawInputs>,
    fields: Parameters<typeof promoteOf>[0]['fields'],
    context = release,
    problems: InputProblem[] = [],
  ) {
    const wish = promoteOf({ raw: { ...EMPTY_INPUTS, 'promote-from': 'staging', ...raw }, fields, context, problems })
    return { wish, problems }
  }

  it.each<[string, Partial<RawInputs>, Parameters<typeof promoteOf>[0]['fields'], typeof release, InputProblem]>([
    [
      'an event without a tag',
      {},
      { 'promote-from': from },
      branch,
      {
        input: 'tag',
        problem: 'is empty, and the event workflow_dispatch names no tag: it says what is to be promoted',
        fix: 'run on a release or on the push of a tag, or set tag',
      },
    ],
    [
      'no event',
      {},
      { 'promote-from': from },
      githubContext({ eventName: '', ref: '' }),
      {
        input: 'tag',
        problem: 'is empty, and the event (none) names no tag: it says what is to be promoted',
        fix: 'run on a release or on the push of a tag, or set tag',
      },
    ],
    [
      'an image without a digest',
      { 'image-uri': 'agent:1' },
      { 'promote-from': from, 'image-uri': 'agent:1' },
      release,
      {
        input: 'image-uri',
        problem: 'names no digest: a tag of an image may mean another image by now',
        fix: 'write it as name@sha256:…, or leave it out and give a tag of the repository',
      },
    ],
    [
      'no deployment to promote from',
      { 'promote-from': '' },
      {},
      release,
      {
        input: 'promote-from',
        problem: 'is empty, and mode is promote',
        fix: 'set it to the name or the id of the deployment that was proven',
      },
    ],
    [
      'the target',
      { 'promote-from': 'staging', 'deployment-name': 'staging' },
      { 'promote-from': from },
      release,
      {
        input: 'promote-from',
        problem: 'is the deployment that is to be changed',
        fix: 'name the deployment that was proven in promote-from, and the one that is to get its revision as deployment-name',
      },
    ],
    [
      'the target, by its id in other letters',
      { 'promote-from': DEPLOYMENT_ID.toUpperCase(), 'deployment-id': DEPLOYMENT_ID },
      { 'promote-from': { id: DEPLOYMENT_ID } },
      release,
      {
        input: 'promote-from',
        problem: 'is the deployment that is to be changed',
        fix: 'name the deployment that was proven in promote-from, and the one that is to get its revision as deployment-name',
      },
    ],
    ...(['repo-url', 'repo-ref', 'config-path'] as const).map(
      (input): [string, Partial<RawInputs>, Parameters<typeof promoteOf>[0]['fields'], typeof release, InputProblem] => [
        input,
        { [input]: 'x' },
        { 'promote-from': from },
        release,
        {
          input,
          problem: 'is set, and mode is promote, which takes it from the revision that was proven',
          fix: `take ${input} out, or use mode: deploy`,
        },
      ],
    ),
    [
      'that it is not waited for',
      {},
      { 'promote-from': from, wait: false },
      release,
      {
        input: 'wait',
        problem: 'is false, and mode is promote: whether the proven commit was built can only be seen at the end',
        fix: 'take wait out',
      },
    ],
  ])('is %s, with what helps', (_, raw, fields, context, problem) => {
    expect(wished(raw, fields, context)).toEqual({ wish: undefined, problems: [problem] })
  })

  it('is nothing of what others found before, and what could not be read is not told again', () => {
    const before: InputProblem = { input: 'timeout', problem: 'is not a duration' }
    const { wish, problems } = wished({}, { 'promote-from': from, tag: 'refs/tags/v3' }, branch, [before])
    expect([wish, problems]).toEqual([{ from, tag: 'refs/tags/v3' }, [before]])
    expect(wished({ tag: 'a b' }, { 'promote-from': from }, branch).problems).toEqual([])
    expect(wished({ 'promote-from': 'not a name' }, {})).toEqual({ wish: undefined, problems: [] })
  })

  it('is nothing: the tag is that of the input, else of the event, and a branch is none', () => {
    expect(wished({ tag: 'v3' }, { 'promote-from': from, tag: 'refs/tags/v3' }).wish).toEqual({ from, tag: 'refs/tags/v3' })
    expect(wished({}, { 'promote-from': from }).wish).toEqual({ from, tag: 'refs/tags/v2.0.0' })
    const image = wished({ 'image-uri': DIGEST }, { 'promote-from': from, 'image-uri': DIGEST }, branch)
    expect(image).toEqual({ wish: { from, imageUri: DIGEST }, problems: [] })
    const nowhere = githubContext({ eventName: 'schedule', ref: '' })
    expect(wished({ 'image-uri': DIGEST }, { 'promote-from': from, 'image-uri': DIGEST }, nowhere)).toEqual(image)
  })
})

describe('digestOf', () => {
  it.each([
    [DIGEST, `sha256:${'a'.repeat(64)}`],
    [`${DIGEST}0`, undefined],
    [`agent@sha256:${'a'.repeat(63)}`, undefined],
    [`agent@sha256:${'A'.repeat(64)}`, undefined],
    ['agent:1', undefined],
  ])('of %s is %s', (imageUri, expected) => {
    expect(digestOf(imageUri)).toBe(expected)
  })
})
