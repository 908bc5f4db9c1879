import { exampleOf } from './description.ts'
import type { Account, CommentState, DeploymentRecordState, GithubState, PullRequestState, StatusState } from './state.ts'

/** Answers as GitHub writes them: its own examples, with the fields that a test is about. */

type Where = { api: string; repository: string }
type Body = Record<string, unknown>

export function pullRequestBody(pull: PullRequestState, where: Where): Body {
  const example = exampleOf('pull-request')
  const head = example['head'] as Body
  const repo = pull.headRepository === null ? null : { ...(head['repo'] as Body), full_name: pull.headRepository }
  return {
    ...example,
    ...numbered(pull, where),
    requested_teams: [],
    merged: false,
    head: { ...head, ref: pull.headRef, sha: pull.headSha, repo },
  }
}

/** As it stands in a list. */
export function shortPullRequestBody(pull: PullRequestState, where: Where): Body {
  const [example] = exampleOf('pull-request-simple-items') as unknown as [Body]
  return { ...example, ...numbered(pull, where), requested_teams: [] }
}

function numbered({ number, state, title }: PullRequestState, { api, repository }: Where): Body {
  return { number, state, title, url: `${api}/repos/${repository}/pulls/${number}` }
}

export function commentBody(comment: CommentState, { api, repository }: Where): Body {
  const { id, pullRequest, author, body, createdAt } = comment
  return {
    ...exampleOf('issue-comment'),
    id,
    url: `${api}/repos/${repository}/issues/comments/${id}`,
    html_url: `https://github.com/${repository}/pull/${pullRequest}#issuecomment-${id}`,
    issue_url: `${api}/repos/${repository}/issues/${pullRequest}`,
    user: accountBody(author),
    body,
    created_at: new Date(createdAt).toISOString(),
  }
}

export function deploymentBody(record: DeploymentRecordState, { api, repository }: Where): Body {
  const { id, sha, ref, task, payload, environment, description, transient, production, author, createdAt } = record
  const url = `${api}/repos/${repository}/deployments/${id}`
  return {
    ...exampleOf('deployment-simple-example'),
    id,
    sha,
    ref,
    task,
    payload,
    environment,
    description,
    url,
    original_environment: environment,
    transient_environment: transient,
    production_environment: production,
    creator: accountBody(author),
    statuses_url: `${url}/statuses`,
    created_at: new Date(createdAt).toISOString(),
  }
}

export function statusBody(record: DeploymentRecordState, status: StatusState, { api, repository }: Where): Body {
  const url = `${api}/repos/${repository}/deployments/${record.id}`
  const { id, state, description, environmentUrl, logUrl, author, createdAt } = status
  return {
    ...exampleOf('deployment-status'),
    id,
    state,
    description,
    environment: record.environment,
    environment_url: environmentUrl,
    log_url: logUrl,
    target_url: logUrl,
    creator: accountBody(author),
    url: `${url}/statuses/${id}`,
    deployment_url: url,
    created_at: new Date(createdAt).toISOString(),
  }
}

export function refBody({ tags }: GithubState, tag: string, { api, repository }: Where): Body {
  const object = tags.get(tag)
  const kind = object?.type === 'tag' ? 'tags' : 'commits'
  return {
    ...exampleOf('git-ref'),
    ref: `refs/tags/${tag}`,
    url: `${api}/repos/${repository}/git/refs/tags/${encodeURIComponent(tag)}`,
    object: { ...object, url: `${api}/repos/${repository}/git/${kind}/${object?.sha ?? ''}` },
  }
}

export function tagBody({ tagObjects }: GithubState, sha: string, { api, repository }: Where): Body {
  const { tag, ...object } = tagObjects.get(sha) ?? { tag: '', type: 'commit', sha }
  const url = `${api}/repos/${repository}/git`
  return {
    ...exampleOf('git-tag'),
    sha,
    tag,
    url: `${url}/tags/${sha}`,
    object: { ...object, url: `${url}/${object.type}s/${object.sha}` },
  }
}

function accountBody({ login, type }: Account): Body {
  return { ...(exampleOf('issue-comment')['user'] as Body), login, type }
}
