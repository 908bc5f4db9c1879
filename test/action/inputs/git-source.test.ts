import { describe, expect, it } from 'vitest'
import { gitSource } from '../../../src/action/inputs/git-source.ts'
import type { RawInputs } from '../../../src/action/inputs.ts'
import { readFields } from '../../../src/action/inputs/read.ts'
import type { InputProblem } from '../../../src/action/parse/problem.ts'
import type { GithubContext } from '../../../src/action/github/context.ts'
import { githubContext } from '../support/github.ts'
import { EMPTY_INPUTS } from '../support/inputs.ts'

const SHA = 'a'.repeat(40)
const HERE = 'https://github.com/acme/agents'

function read(changes: Partial<RawInputs>, github: Partial<GithubContext> = {}) {
  const raw = { ...EMPTY_INPUTS, 'api-key': 'key', ...changes }
  const { fields, problems: others } = readFields(raw)
  const problems: InputProblem[] = []
  const source = gitSource({ raw, fields, context: githubContext(github), problems })
  expect(others.every(({ input }) => changes[input] !== undefined)).toBe(true)
  return { source, problems }
}

const git = (changes: Record<string, unknown>) => ({
  kind: 'git_host',
  repoUrl: HERE,
  repoRef: 'main',
  configPath: 'langgraph.json',
  ...changes,
})

describe('what is built', () => {
  it.each<[string, Partial<RawInputs>, object]>([
    ['is the event’s', {}, git({ commit: SHA, eventCommit: SHA })],
    ['is the named branch', { 'repo-ref': 'next' }, git({ repoRef: 'next' })],
    ['is the named tag', { tag: 'v1' }, git({ repoRef: 'refs/tags/v1' })],
    ['is the tag, before the branch', { tag: 'v1', 'repo-ref': 'main' }, git({ repoRef: 'refs/tags/v1' })],
    ['is the event’s branch, named', { 'repo-ref': 'main' }, git({ commit: SHA, eventCommit: SHA })],
    ['has another configuration', { 'config-path': 'a/b.json' }, git({ configPath: 'a/b.json', commit: SHA, eventCommit: SHA })],
    [
      'is of another address of the same repository',
      { 'repo-url': 'https://GitHub.com/Acme/agents.git' },
      git({ repoUrl: 'https://GitHub.com/Acme/agents.git', commit: SHA, eventCommit: SHA }),
    ],
    [
      'is of another repository',
      { 'repo-url': 'https://github.com/acme/other' },
      git({ repoUrl: 'https://github.com/acme/other', eventCommit: SHA }),
    ],
    ['is a branch, with pushes built', { 'build-on-push': 'true' }, git({ commit: SHA, eventCommit: SHA })],
    ['is a tag, without pushes built', { tag: 'v1', 'build-on-push': 'false' }, git({ repoRef: 'refs/tags/v1' })],
  ])('%s', (_, changes, source) => {
    expect(read(changes)).toStrictEqual({ source, problems: [] })
  })

  it('is of no event’s commit where the event has no repository', () => {
    expect(read({ 'repo-url': HERE }, { repository: '' })).toStrictEqual({ source: git({ eventCommit: SHA }), problems: [] })
  })

  it.each<[string, Partial<RawInputs>, Partial<GithubContext>, InputProblem[]]>([
    [
      'without a repository',
      {},
      { repository: '' },
      [
        {
          input: 'repo-url',
          problem: 'is empty, and GITHUB_REPOSITORY does not say which repository this is',
          fix: 'set repo-url, or image-uri to run an image',
        },
      ],
    ],
    [
      'without a ref',
      {},
      { eventName: 'issue_comment', ref: '' },
      [
        {
          input: 'repo-ref',
          problem: "is empty, and the event issue_comment has no branch or tag (GITHUB_REF is '')",
          fix: 'set repo-ref or tag',
        },
      ],
    ],
    ['with a bad ref that was named', { 'repo-ref': 'a b' }, {}, []],
    ['with a bad repository that was named', { 'repo-url': 'a b' }, {}, []],
  ])('is not known %s', (_, changes, github, problems) => {
    expect(read(changes, github)).toEqual({ source: undefined, problems })
  })

  it('is not a ref of the event that nobody can deploy', () => {
    expect(read({}, { ref: 'refs/heads/-x' }).problems).toEqual([
      {
        input: 'repo-ref',
        problem: "is empty, and the event's ref '-x' is not one that can be deployed",
        fix: 'set repo-ref or tag',
      },
    ])
  })

  it('is not a tag whose pushes are to be built', () => {
    const problem = {
      input: 'build-on-push',
      value: 'true',
      problem: 'contradicts the tag refs/tags/v1: when a tag is used, build_on_push must be false',
      fix: 'set build-on-push to false, or deploy a branch',
    }
    for (const changes of [{ tag: 'v1' }, { 'repo-ref': 'refs/tags/v1' }])
      expect(read({ ...changes, 'build-on-push': 'true' }).problems).toEqual([problem])
    expect(read({ 'build-on-push': 'true' }, { ref: 'refs/tags/v1' }).problems).toEqual([problem])
  })

  it('is not a fork that nobody named', () => {
    const head = { ref: 'x', sha: SHA, repo: { full_name: 'mallory/agents' } }
    const fork = { eventName: 'pull_request', payload: { pull_request: { head } } }
    expect(read({}, fork).problems).toEqual([
      {
        input: 'repo-url',
        problem: 'is empty, and the pull request comes from a fork (https://github.com/mallory/agents)',
        fix: 'set repo-url to the fork to deploy code that anybody may have written, or skip this step for forks',
      },
    ])
    expect(read({ 'repo-url': 'https://github.com/mallory/agents' }, fork)).toStrictEqual({
      source: git({ repoUrl: 'https://github.com/mallory/agents', repoRef: 'x', commit: SHA, eventCommit: SHA }),
      problems: [],
    })
  })
})
