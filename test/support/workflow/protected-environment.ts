import type { TemplateToken } from '@actions/workflow-parser/templates/tokens/template-token'
import { ACTIONS_BOT, type GithubDouble } from '../github-double.ts'
import type { WorkflowEvent } from '../runner/job-environment.ts'
import { evaluate, type Plain, type Scope, textOf } from './expression.ts'
import { isMapping } from './github-parser.ts'
import type { JobResult } from './job.ts'

type Environment = { token: TemplateToken | undefined; scope: Scope; github: GithubDouble; event: WorkflowEvent }

/** The record that GitHub itself keeps of a job with an `environment:`, on the deployments page; undefined: the job has none. */
export async function recordEnvironment({ token, scope, github, event }: Environment) {
  if (token === undefined) return undefined
  const name = isMapping(token) ? token.find('name') : token
  const url = isMapping(token) ? token.find('url') : undefined
  const key = 'the-own-token-of-github'
  github.state.tokens.set(key, {
    account: ACTIONS_BOT,
    permissions: { contents: 'read', deployments: 'write', issues: 'none', 'pull-requests': 'none' },
  })
  const post = async (path: string, body: Record<string, Plain>): Promise<{ id: number }> => {
    const answer = await fetch(`${github.url}/repos/${github.state.repository}/deployments${path}`, {
      method: 'POST',
      headers: { authorization: `token ${key}`, 'content-type': 'application/json', 'user-agent': 'github' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`the record of the environment was answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as { id: number }
  }
  const environment = textOf(evaluate(name, scope))
  const { id } = await post('', { ref: event.sha, environment, auto_merge: false, required_contexts: [] })
  await post(`/${id}/statuses`, { state: 'in_progress' })
  return {
    end: async (result: JobResult | undefined): Promise<void> => {
      const address = result === undefined || url === undefined ? '' : textOf(evaluate(url, result.scope))
      const state = result?.status === 'success' ? 'success' : 'failure'
      await post(`/${id}/statuses`, { state, ...(address === '' ? {} : { environment_url: address }) })
      github.state.tokens.delete(key)
    },
  }
}
