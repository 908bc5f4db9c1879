import { describe, expect, it } from 'vitest'
import type { SourceRevisionConfigAnswer } from '../../../src/contract/answers.ts'
import {
  goodServes,
  interference,
  needsRevision,
  reasonToLeave,
  type Scene,
  updateBack,
} from '../../../src/action/rollback/decide.ts'
import type { ErrorCode } from '../../../src/action/report/error-codes.ts'
import { httpFailure } from '../../support/request-failure.ts'

const NOTHING: SourceRevisionConfigAnswer = { repo_ref: null, graph_config_path: null, image_uri: null, repo_commit_sha: null }
const GIT = { ...NOTHING, repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: 'aaa' }
const IMAGE = { ...NOTHING, image_uri: 'registry.example.com/agent:1' }

type Changes = {
  good?: Partial<SourceRevisionConfigAnswer>
  failed?: Partial<SourceRevisionConfigAnswer>
  status?: string
  active?: string | null | undefined
  latest?: string | null
}

function scene(base: SourceRevisionConfigAnswer, changes: Changes = {}): Scene {
  const { good, failed, status = 'BUILD_FAILED', latest = 'bad' } = changes
  return {
    good: { revisionId: 'good', source: { ...base, ...good }, buildOnPush: null },
    failed: { revisionId: 'bad', status, source: { ...base, ...failed } },
    activeRevisionId: 'active' in changes ? changes.active : 'good',
    latestRevisionId: latest,
  }
}

describe('a failure', () => {
  it.each<ErrorCode>(['E_CREATE_FAILED', 'E_BUILD_FAILED', 'E_DEPLOY_FAILED', 'E_SMOKE_TEST', 'E_CONFLICT'])(
    '%s is one to roll back for',
    (code) => {
      expect(reasonToLeave({ code, cause: undefined })).toBeUndefined()
    },
  )

  it.each<[ErrorCode, string]>([
    ['E_SUPERSEDED', 'another revision has taken over, and it is not for this step to replace that one'],
    ['E_INTERRUPTED', 'whoever interrupted the revision left the one before in service'],
    ['E_TIMEOUT', 'the revision has not failed: it was not seen to end'],
    ['E_CANCELLED', 'the step was cancelled'],
    ['E_UNAVAILABLE', 'it is not known that the revision is bad'],
    ['E_PROTOCOL', 'it is not known that the revision is bad'],
    ['E_NOT_FOUND', 'it is not known that the revision is bad'],
  ])('%s is none: %s', (code, reason) => {
    expect(reasonToLeave({ code, cause: undefined })).toBe(reason)
  })

  it('of a request says nothing about the revision where it is a conflict, and does where the agent gave it', () => {
    expect(reasonToLeave({ code: 'E_CONFLICT', cause: httpFailure(409) })).toBe('it is not known that the revision is bad')
    expect(reasonToLeave({ code: 'E_SMOKE_TEST', cause: httpFailure(409) })).toBeUndefined()
  })
})

describe('somebody else’s work', () => {
  it.each<[string, Changes, string | undefined]>([
    ['nothing, while the good one serves', {}, undefined],
    ['nothing, while the failed one serves', { active: 'bad' }, undefined],
    ['nothing, while none serves', { active: null }, undefined],
    ['nothing, while the control plane does not tell', { active: undefined, latest: null }, undefined],
    ['another that serves', { active: 'third' }, 'another revision, third, serves by now'],
    ['a newer one', { latest: 'third' }, 'a newer revision, third, is on its way'],
    ['the good one, made the latest again', { latest: 'good' }, 'a newer revision, good, is on its way'],
    ['both', { active: 'third', latest: 'fourth' }, 'another revision, third, serves by now'],
  ])('is %s', (_, changes, expected) => {
    expect(interference(scene(GIT, changes))).toBe(expected)
  })
})

describe('the last good revision', () => {
  it.each<[Changes, boolean]>([
    [{ active: 'good' }, true],
    [{ active: undefined }, true],
    [{ active: null }, false],
    [{ active: 'bad' }, false],
    [{ active: 'good', status: 'DEPLOYED' }, false],
    [{ active: undefined, status: 'DEPLOYED' }, false],
  ])('with %j serves: %j', (changes, expected) => {
    expect(goodServes(scene(GIT, changes))).toBe(expected)
    expect(needsRevision(scene(GIT, changes), { secretsSent: false })).toBe(!expected)
  })

  it.each<[string, SourceRevisionConfigAnswer, Changes, boolean, boolean]>([
    ['the same source', GIT, {}, false, false],
    ['secrets that were sent', GIT, {}, true, true],
    ['another ref', GIT, { failed: { repo_ref: 'next' } }, false, true],
    ['another configuration', GIT, { failed: { graph_config_path: 'other.json' } }, false, true],
    ['a configuration that is not told', GIT, { good: { graph_config_path: null } }, false, false],
    ['another commit of the same ref', GIT, { failed: { repo_commit_sha: 'bbb' } }, false, false],
    ['another image that the service has built', GIT, { good: { image_uri: 'i:1' }, failed: { image_uri: 'i:2' } }, false, false],
    ['another image', IMAGE, { failed: { image_uri: 'registry.example.com/agent:2' } }, false, true],
    ['the same image', IMAGE, {}, false, false],
  ])('has to be made once more after %s', (_, base, changes, secretsSent, expected) => {
    expect(needsRevision(scene(base, changes), { secretsSent })).toBe(expected)
  })
})

describe('the update back', () => {
  it.each<[string, SourceRevisionConfigAnswer, Changes, ReturnType<typeof updateBack>]>([
    [
      'to the image before',
      IMAGE,
      { failed: { image_uri: 'registry.example.com/agent:2' } },
      { body: { source_revision_config: { image_uri: 'registry.example.com/agent:1' } } },
    ],
    [
      'to an image of the same name',
      IMAGE,
      {},
      { impossible: 'the image has the same name as before, registry.example.com/agent:1: it would be the same again' },
    ],
    ['to nothing known', NOTHING, {}, { impossible: 'the control plane does not tell what good was made from' }],
    [
      'to a branch that has moved',
      GIT,
      { failed: { repo_commit_sha: 'bbb' } },
      { impossible: 'main has moved from aaa to bbb, and the control plane builds from branches and tags only' },
    ],
    [
      'to a branch whose commit was not told',
      GIT,
      { good: { repo_commit_sha: null }, failed: { repo_commit_sha: 'bbb' } },
      {
        impossible: 'main has moved from an unknown commit to bbb, and the control plane builds from branches and tags only',
      },
    ],
    [
      'to a branch whose new commit is not told, with another configuration',
      GIT,
      { failed: { repo_commit_sha: null, graph_config_path: 'other.json' } },
      {
        impossible: 'main has moved from aaa to another commit, and the control plane builds from branches and tags only',
      },
    ],
    ['to the same ref and commit', GIT, {}, { impossible: 'it was made from the same ref and commit, main at aaa' }],
    [
      'to the same ref, at commits that nobody tells',
      GIT,
      { good: { repo_commit_sha: null }, failed: { repo_commit_sha: null } },
      { impossible: 'it was made from the same ref and commit, main at an unknown one' },
    ],
    [
      'to a branch, while its revision serves',
      GIT,
      { failed: { repo_ref: 'next', repo_commit_sha: 'bbb' } },
      { impossible: 'main is a branch, whose newest commit may be another than aaa, which serves' },
    ],
    [
      'to a branch at an unknown commit, while its revision serves',
      GIT,
      { good: { repo_commit_sha: null }, failed: { repo_ref: 'next' } },
      { impossible: 'main is a branch, whose newest commit may be another than that, which serves' },
    ],
    [
      'to a branch, while its revision does not serve',
      GIT,
      { failed: { repo_ref: 'next', repo_commit_sha: 'bbb' }, active: 'bad' },
      { body: { source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' } } },
    ],
    [
      'to a tag, while its revision serves',
      GIT,
      { good: { repo_ref: 'refs/tags/v1', graph_config_path: null }, failed: { repo_ref: 'refs/tags/v2' } },
      { body: { source_revision_config: { repo_ref: 'refs/tags/v1' } } },
    ],
    [
      'to the configuration before, of the same commit',
      GIT,
      { failed: { graph_config_path: 'other.json' }, active: null },
      { body: { source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' } } },
    ],
  ])('%s', (_, base, changes, expected) => {
    expect(updateBack(scene(base, changes))).toEqual(expected)
  })
})
