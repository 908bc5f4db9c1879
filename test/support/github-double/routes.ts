import { commentBody, deploymentBody, pullRequestBody, refBody, shortPullRequestBody, statusBody, tagBody } from './bodies.ts'
import type { Call } from './description.ts'
import { type DeploymentRecordState, type GithubState, type PermissionName, stateOf, type TokenHolder } from './state.ts'

export type Answer = { status: number; body?: unknown; headers?: Record<string, string> }

type Asked = Call & {
  values: Record<string, string>
  state: GithubState
  holder: TokenHolder
  api: string
  /** A number that no object has yet. */
  nextId: () => number
}
/** What an operation does, and what a token needs for it: any one of these. */
type Route = { needs: readonly `${PermissionName}: ${'read' | 'write'}`[]; run: (asked: Asked) => Answer }

/** Names of the `task` and the like are compared as they are; environments without regard to case. */
const DESCRIPTION_MAX = 140
const COMMENT_MAX = 65_536

export const ROUTES: Readonly<Record<string, Route>> = {
  'pulls/get': {
    needs: ['pull-requests: read'],
    run: ({ state, values, api }) => {
      const pull = state.pullRequests.get(Number(values['pull_number']))
      return pull === undefined ? NOT_FOUND : { status: 200, body: pullRequestBody(pull, { api, repository: state.repository }) }
    },
  },
  'pulls/list': {
    needs: ['pull-requests: read'],
    run: (asked) => {
      const wanted = asked.query.get('state') ?? 'open'
      const pulls = [...asked.state.pullRequests.values()].filter(({ state }) => wanted === 'all' || state === wanted)
      return page(
        asked,
        pulls.map((pull) => shortPullRequestBody(pull, { api: asked.api, repository: asked.state.repository })),
      )
    },
  },
  'git/get-ref': {
    needs: ['contents: read'],
    run: ({ state, values, api }) => {
      const [, tag] = /^tags\/(.+)$/.exec(values['ref'] ?? '') ?? []
      if (tag === undefined || !state.tags.has(tag)) return NOT_FOUND
      return { status: 200, body: refBody(state, tag, { api, repository: state.repository }) }
    },
  },
  'git/get-tag': {
    needs: ['contents: read'],
    run: ({ state, values, api }) => {
      const sha = values['tag_sha'] ?? ''
      if (!state.tagObjects.has(sha)) return NOT_FOUND
      return { status: 200, body: tagBody(state, sha, { api, repository: state.repository }) }
    },
  },
  'repos/create-deployment': { needs: ['deployments: write'], run: createDeployment },
  'repos/list-deployments': {
    needs: ['deployments: read'],
    run: (asked) => {
      const { state, query, api } = asked
      const fits = (record: DeploymentRecordState): boolean =>
        (['sha', 'ref', 'task'] as const).every((name) => [null, 'none', record[name]].includes(query.get(name))) &&
        (query.get('environment') ?? record.environment).toLowerCase() === record.environment.toLowerCase()
      const records = state.deployments.filter(fits).toReversed()
      return page(
        asked,
        records.map((record) => deploymentBody(record, { api, repository: state.repository })),
      )
    },
  },
  'repos/create-deployment-status': { needs: ['deployments: write'], run: createStatus },
  'repos/list-deployment-statuses': {
    needs: ['deployments: read'],
    run: (asked) => {
      const { state, values, api } = asked
      const record = state.deployments.find(({ id }) => id === Number(values['deployment_id']))
      if (record === undefined) return NOT_FOUND
      return page(
        asked,
        record.statuses.toReversed().map((status) => statusBody(record, status, { api, repository: state.repository })),
      )
    },
  },
  'issues/list-comments': {
    needs: ['issues: read', 'pull-requests: read'],
    run: (asked) => {
      const { state, values, api } = asked
      const number = Number(values['issue_number'])
      if (!state.pullRequests.has(number)) return NOT_FOUND
      const comments = state.comments.filter(({ pullRequest }) => pullRequest === number)
      return page(
        asked,
        comments.map((comment) => commentBody(comment, { api, repository: state.repository })),
      )
    },
  },
  'issues/create-comment': {
    needs: ['issues: write', 'pull-requests: write'],
    run: ({ state, values, holder, body, api, nextId }) => {
      const pullRequest = Number(values['issue_number'])
      if (!state.pullRequests.has(pullRequest)) return NOT_FOUND
      const text = String((body as Record<string, unknown>)['body'])
      if (text.length > COMMENT_MAX)
        return invalid('IssueComment', 'body', `body is too long (maximum is ${COMMENT_MAX} characters)`)
      const comment = { id: nextId(), pullRequest, author: holder.account, body: text, createdAt: Date.now(), edits: 0 }
      state.comments.push(comment)
      return { status: 201, body: commentBody(comment, { api, repository: state.repository }) }
    },
  },
  'issues/update-comment': {
    needs: ['issues: write', 'pull-requests: write'],
    run: ({ state, values, body, api }) => {
      const comment = state.comments.find(({ id }) => id === Number(values['comment_id']))
      if (comment === undefined) return NOT_FOUND
      const text = String((body as Record<string, unknown>)['body'])
      if (text.length > COMMENT_MAX)
        return invalid('IssueComment', 'body', `body is too long (maximum is ${COMMENT_MAX} characters)`)
      comment.body = text
      comment.edits++
      return { status: 200, body: commentBody(comment, { api, repository: state.repository }) }
    },
  },
  'issues/delete-comment': {
    needs: ['issues: write', 'pull-requests: write'],
    run: ({ state, values }) => {
      const index = state.comments.findIndex(({ id }) => id === Number(values['comment_id']))
      if (index < 0) return NOT_FOUND
      state.comments.splice(index, 1)
      return { status: 204 }
    },
  },
}

function createDeployment({ state, body, holder, api, nextId }: Asked): Answer {
  const fields = body as Record<string, unknown>
  const ref = String(fields['ref'])
  const tag = state.tags.get(ref.replace(/^refs\/tags\//, ''))
  const sha = /^[0-9a-f]{40}$/.test(ref)
    ? ref
    : (state.branches.get(ref) ?? (tag?.type === 'tag' ? state.tagObjects.get(tag.sha)?.sha : tag?.sha))
  if (sha === undefined) return invalid('Deployment', 'ref', `No ref found for: ${ref}`)
  // Neither is modelled: what awaits checks or merges would need them.
  if (fields['auto_merge'] !== false || JSON.stringify(fields['required_contexts']) !== '[]') {
    return refused(409, 'Conflict: the commit status checks failed for this deployment.')
  }
  const environment = String(fields['environment'] ?? 'production')
  const record: DeploymentRecordState = {
    id: nextId(),
    ref,
    sha,
    task: String(fields['task'] ?? 'deploy'),
    environment,
    description: String(fields['description'] ?? ''),
    payload: fields['payload'] ?? '',
    transient: fields['transient_environment'] === true,
    production:
      fields['production_environment'] === true ||
      (fields['production_environment'] === undefined && environment === 'production'),
    author: holder.account,
    createdAt: Date.now(),
    statuses: [],
  }
  state.deployments.push(record)
  return { status: 201, body: deploymentBody(record, { api, repository: state.repository }) }
}

function createStatus({ state, values, body, holder, api, nextId }: Asked): Answer {
  const record = state.deployments.find(({ id }) => id === Number(values['deployment_id']))
  if (record === undefined) return NOT_FOUND
  const fields = body as Record<string, unknown>
  const text = (name: string): string => String(fields[name] ?? '')
  if (text('description').length > DESCRIPTION_MAX) {
    return invalid('DeploymentStatus', 'description', `description is too long (maximum is ${DESCRIPTION_MAX} characters)`)
  }
  for (const name of ['environment_url', 'log_url']) {
    if (text(name) !== '' && !/^https?:\/\//.test(text(name)))
      return invalid('DeploymentStatus', name, `${name} must use http(s) scheme`)
  }
  const status = {
    id: nextId(),
    state: text('state'),
    description: text('description'),
    environmentUrl: text('environment_url'),
    logUrl: text('log_url'),
    author: holder.account,
    createdAt: Date.now(),
  }
  record.statuses.push(status)
  if (status.state === 'success' && fields['auto_inactive'] !== false) {
    const earlier = state.deployments.filter(
      (other) =>
        other !== record &&
        other.environment === record.environment &&
        !other.transient &&
        !other.production &&
        other.id < record.id,
    )
    for (const other of earlier) {
      if (stateOf(other) === 'success') other.statuses.push({ ...status, id: nextId(), state: 'inactive', description: '' })
    }
  }
  return { status: 201, body: statusBody(record, status, { api, repository: state.repository }) }
}

/** One page, with the links to the others. */
function page({ query, path, api }: Asked, items: readonly unknown[]): Answer {
  const size = Math.min(100, Number(query.get('per_page') ?? 30))
  const number = Number(query.get('page') ?? 1)
  const last = Math.max(1, Math.ceil(items.length / size))
  const link = (target: number, rel: string): string => {
    const parameters = new URLSearchParams(query)
    parameters.set('page', String(target))
    return `<${api}${path}?${parameters.toString()}>; rel="${rel}"`
  }
  const links = [
    ...(number > 1 ? [link(number - 1, 'prev')] : []),
    ...(number < last ? [link(number + 1, 'next'), link(last, 'last')] : []),
    ...(number > 1 ? [link(1, 'first')] : []),
  ]
  const body = items.slice((number - 1) * size, number * size)
  return { status: 200, body, ...(links.length === 0 ? {} : { headers: { link: links.join(', ') } }) }
}

const DOCUMENTATION = 'https://docs.github.com/rest'

export function refused(status: number, message: string, headers: Record<string, string> = {}): Answer {
  return { status, body: { message, documentation_url: DOCUMENTATION, status: String(status) }, headers }
}

const NOT_FOUND = refused(404, 'Not Found')

function invalid(resource: string, field: string, message: string): Answer {
  const errors = [{ resource, field, code: 'custom', message }]
  return { status: 422, body: { message: 'Validation Failed', documentation_url: DOCUMENTATION, errors, status: '422' } }
}

/** What GitHub says to a token that may not: it names the permissions, any one of which would do. */
export function refusal({ needs }: Route, holder: TokenHolder): Answer | undefined {
  const enough = needs.some((need) => {
    const [name, level] = need.split(': ') as [PermissionName, 'read' | 'write']
    const has = holder.permissions[name]
    return has === 'write' || has === level
  })
  if (enough) return undefined
  const accepted = needs.map((need) => need.replaceAll('-', '_').replace(': ', '=')).join('; ')
  return refused(403, 'Resource not accessible by integration', { 'x-accepted-github-permissions': accepted })
}
