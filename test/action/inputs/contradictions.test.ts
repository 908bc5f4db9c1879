import { describe, expect, it } from 'vitest'
import { contradictions, previewContradictions } from '../../../src/action/inputs/contradictions.ts'
import { given, readFields, refusal } from '../../../src/action/inputs/read.ts'
import { unusedWarnings } from '../../../src/action/inputs/unused.ts'
import type { Mode, RawInputs } from '../../../src/action/inputs.ts'
import type { InputProblem } from '../../../src/action/parse/problem.ts'
import { INPUT_NAMES, inputSpec } from '../../../src/action/registry.ts'
import { EMPTY_INPUTS } from '../support/inputs.ts'

const raw = (changes: Partial<RawInputs>): RawInputs => ({ ...EMPTY_INPUTS, 'deployment-name': 'agent', ...changes })

const both = (input: InputProblem['input']) => ({
  input,
  problem: 'and image-uri are both set',
  fix: `take ${input} out to run the image, or image-uri to build from git`,
})
const untested = (input: InputProblem['input']) => ({
  input,
  problem: 'is set, and smoke-test-input is empty: no smoke test would run',
  fix: `set smoke-test-input, or take ${input} out`,
})
const NOT_WAITED = {
  input: 'rollback-on-failure',
  problem: 'and wait: false contradict each other: a failure that is not waited for cannot be rolled back',
  fix: 'take one of them out',
} as const
const GIT_INPUTS = { 'repo-url': 'x', 'config-path': 'x', 'integration-id': 'x', 'build-on-push': 'true' }

describe('inputs that exclude each other', () => {
  it.each<[string, Partial<RawInputs>, InputProblem[]]>([
    ['a name', {}, []],
    ['an id', { 'deployment-name': '', 'deployment-id': 'x' }, []],
    [
      'a name and an id',
      { 'deployment-id': 'x' },
      [
        {
          input: 'deployment-id',
          problem: 'and deployment-name are both set',
          fix: 'keep deployment-id to update exactly this one, or deployment-name to create it when it is absent',
        },
      ],
    ],
    [
      'neither',
      { 'deployment-name': '' },
      [{ input: 'deployment-name', problem: 'and deployment-id are both empty', fix: 'set one of them' }],
    ],
    [
      'a tag and a branch',
      { tag: 'v1', 'repo-ref': 'main' },
      [{ input: 'tag', problem: 'and repo-ref are both set', fix: 'keep tag for a tag, or repo-ref for a branch' }],
    ],
    ['a source of git', { tag: 'v1', ...GIT_INPUTS }, []],
    [
      'an image and git',
      { 'image-uri': 'x', 'repo-ref': 'main', ...GIT_INPUTS },
      [both('repo-url'), both('repo-ref'), both('config-path'), both('integration-id'), both('build-on-push')],
    ],
    [
      'an image, a tag and a branch',
      { 'image-uri': 'x', tag: 'v1', 'repo-ref': 'main' },
      [
        { input: 'tag', problem: 'and repo-ref are both set', fix: 'keep tag for a tag, or repo-ref for a branch' },
        both('repo-ref'),
        both('tag'),
      ],
    ],
    ['a smoke test', { 'smoke-test-input': '{}', 'smoke-test-assistant': 'x', 'smoke-test-expect': 'x' }, []],
    [
      'a smoke test without its input',
      { 'smoke-test-assistant': 'x', 'smoke-test-expect': 'x', 'smoke-test-timeout': '1m', 'smoke-test-stream-mode': 'values' },
      [untested('smoke-test-assistant'), untested('smoke-test-expect')],
    ],
    ['a rollback', { 'rollback-on-failure': 'true', wait: 'true' }, []],
    ['a rollback of what is waited for by default', { 'rollback-on-failure': 'true' }, []],
    ['no rollback', { 'rollback-on-failure': 'false', wait: 'false' }, []],
    ['a rollback of what is not waited for', { 'rollback-on-failure': 'true', wait: 'false' }, [NOT_WAITED]],
    ['a promotion', { mode: 'promote', 'promote-from': 'x' }, []],
    ...(['', 'deploy', 'preview'] as const).map((mode): [string, Partial<RawInputs>, InputProblem[]] => [
      `a promotion in the mode '${mode}'`,
      { mode, 'promote-from': 'x' },
      [
        {
          input: 'promote-from',
          problem: `is set, and mode is ${mode === '' ? 'deploy' : mode}: nothing would be promoted`,
          fix: 'set mode to promote, or take promote-from out',
        },
      ],
    ]),
  ])('%s', (_, changes, problems) => {
    expect(contradictions(raw(changes))).toEqual(problems)
  })
})

describe('inputs that previews refuse', () => {
  const unnamed = (mode: Mode) => [
    {
      input: 'deployment-id',
      problem: `is set, and mode is ${mode}`,
      fix: 'take it out: deployment-name is what the names of the previews are made from',
    },
    {
      input: 'deployment-name',
      problem: `is empty, and mode is ${mode}`,
      fix: 'set it to what the names of the previews begin with',
    },
  ]
  const refused = (input: InputProblem['input']) => ({
    input,
    problem: 'is set, and mode is preview, which deploys the head of the pull request',
    fix: `take ${input} out, or use mode: deploy`,
  })

  it.each<Mode>(['preview', 'teardown', 'sweep'])('in the mode %s', (mode) => {
    expect(previewContradictions(mode, raw({ 'deployment-name': '', 'deployment-id': 'x' }))).toEqual(unnamed(mode))
    expect(previewContradictions(mode, raw({}))).toEqual([])
  })

  it('are those of a source, where one is deployed', () => {
    const wrong = {
      tag: 'v1',
      'repo-ref': 'main',
      'image-uri': 'x',
      'repo-url': 'x',
      'smoke-test-expect': 'x',
      'rollback-on-failure': 'true',
      wait: 'false',
    }
    expect(previewContradictions('preview', raw(wrong))).toEqual([
      refused('tag'),
      refused('repo-ref'),
      both('repo-url'),
      untested('smoke-test-expect'),
      NOT_WAITED,
    ])
    expect(previewContradictions('preview', raw({ 'repo-ref': 'main' }))).toEqual([refused('repo-ref')])
    for (const mode of ['teardown', 'sweep'] as const) expect(previewContradictions(mode, raw(wrong))).toEqual([])
  })
})

describe('inputs that a mode has no use for', () => {
  const always = { 'api-key': 'x', 'workspace-id': 'x', 'control-plane-url': 'x', 'github-token': 'x' }
  it.each<[Mode, Partial<RawInputs>, string[]]>([
    ['deploy', { 'export-bucket': 'x' }, []],
    ['preview', { 'export-bucket': 'x' }, []],
    ['promote', { tag: 'x' }, []],
    ['export', { ...always, 'deployment-name': '', 'export-bucket': 'x', 'api-url': 'x', comment: 'true' }, []],
    ['export', { tag: 'x' }, ['mode is export: deployment-name, tag are not used.']],
    ['teardown', { ...always, 'repo-url': 'x', environment: 'x', comment: 'x' }, []],
    ['teardown', { 'api-url': 'x' }, ['mode is teardown: api-url is not used.']],
    ['sweep', always, []],
    ['sweep', { tag: 'x', environment: 'x', 'repo-url': 'x' }, ['mode is sweep: repo-url, tag, environment are not used.']],
    ['sweep', { timeout: '1m', region: 'eu' }, []],
  ])('%s: %j', (mode, changes, warnings) => {
    expect(unusedWarnings(mode, raw(changes))).toEqual(warnings)
  })
})

describe('reading the inputs', () => {
  const problemsOf = (changes: Partial<RawInputs>) => readFields({ ...EMPTY_INPUTS, 'api-key': 'key', ...changes }).problems

  it('takes defaults for what is empty, and leaves the rest out', () => {
    const { fields, problems } = readFields({ ...EMPTY_INPUTS, 'api-key': 'key', 'preview-ttl': '12h' })
    expect(problems).toEqual([])
    const withDefault = INPUT_NAMES.filter((name) => inputSpec(name).default !== '')
    expect(Object.keys(fields).toSorted()).toEqual(
      ['api-key', 'preview-ttl', ...withDefault].filter((name, at, all) => all.indexOf(name) === at).toSorted(),
    )
    expect(fields).toMatchObject({ 'api-key': 'key', 'preview-ttl': 43_200_000, region: 'us', wait: true })
  })

  it.each<[string, Partial<RawInputs>, InputProblem[]]>([
    [
      'a missing key',
      { 'api-key': '' },
      [{ input: 'api-key', problem: 'is required and empty', fix: 'set api-key from a secret that exists' }],
    ],
    [
      'a value',
      { wait: 'Yes' },
      [{ input: 'wait', value: 'Yes', problem: 'is not a boolean', accepted: 'true or false', fix: 'write true' }],
    ],
    [
      'a value without a better one',
      { 'deployment-type': 'two words' },
      [
        {
          input: 'deployment-type',
          value: 'two words',
          problem: 'is not one word',
          accepted: 'one word, 64 characters at most, such as dev or prod',
        },
      ],
    ],
    [
      'an image with a query',
      { 'image-uri': 'https://registry.example.com/a?hunter2' },
      [
        {
          input: 'image-uri',
          value: 'https://registry.example.com/a?***',
          problem: 'begins with a scheme',
          accepted: 'an image reference such as registry.example.com/team/agent:1.2.3',
        },
      ],
    ],
    [
      'an object',
      { 'smoke-test-input': '[]' },
      [
        {
          input: 'smoke-test-input',
          problem: 'is JSON, but an array',
          accepted: 'a JSON object, such as {"messages": [{"role": "user", "content": "ping"}]}',
        },
      ],
    ],
    [
      'a secret',
      { 'github-token': 'hunter2 hunter2' },
      [
        {
          input: 'github-token',
          problem: 'contains characters that no header can carry',
          accepted: 'a token without white space, on one line',
        },
      ],
    ],
  ])('shows %s as far as it may be shown', (_, changes, problems) => {
    expect(problemsOf(changes)).toEqual(problems)
  })

  it('refuses in the order of action.yml', () => {
    const problem = 'is bad'
    const names = ['timeout', 'api-key', 'tag'] as const
    const { message } = refusal(names.map((input) => ({ input, problem })))
    expect(message).toBe('3 inputs cannot be used:\n- api-key is bad.\n- tag is bad.\n- timeout is bad.')
  })

  it('leaves out what has no value, and nothing else', () => {
    expect(given({ a: undefined, b: null, c: false, d: '', e: 0 })).toEqual({ b: null, c: false, d: '', e: 0 })
    expect(Object.keys(given({ a: undefined, b: 1 }))).toEqual(['b'])
  })
})
