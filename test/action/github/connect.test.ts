import { describe, expect, it } from 'vitest'
import { createGithub } from '../../../src/action/github/client.ts'
import { connectGithub } from '../../../src/action/github/connect.ts'
import type { Github } from '../../../src/action/github/github.ts'
import { startServer } from '../../support/http-server.ts'
import { fakeEffects } from '../support/effects.ts'
import { failureOf } from './support.ts'

const OPERATIONS = [
  'commitOfTag',
  'createComment',
  'createDeployment',
  'createDeploymentStatus',
  'deleteComment',
  'getPullRequest',
  'listComments',
  'listDeploymentStatuses',
  'listDeployments',
  'updateComment',
  'viewer',
]

function connect(token: string | undefined, repository: string, apiUrl = 'http://127.0.0.1:1'): [Github | undefined, string[]] {
  const lines: string[] = []
  const log = { info: (line: string) => void lines.push(line) }
  const redact = (text: string): string => text.replaceAll('acme', '***')
  return [connectGithub({ token, context: { repository, apiUrl }, effects: fakeEffects(), log, redact }), lines]
}

describe('the connection to GitHub', () => {
  it.each([
    [undefined, 'acme/agents'],
    ['token', ''],
    ['token', 'acme'],
    ['token', '/agents'],
    ['token', 'acme/'],
    ['token', 'acme/agents/x'],
    ['token', 'x/acme/agents'],
  ])('with the token %s and the repository %j is none', (token, repository) => {
    expect(connect(token, repository)[0]).toBeUndefined()
  })

  it('has all operations', () => {
    expect(Object.keys(connect('token', 'acme/agents')[0] ?? {}).toSorted()).toEqual(OPERATIONS)
    expect(Object.keys(connect('token', 'a/b')[0] ?? {})).toHaveLength(OPERATIONS.length)
  })

  it('tells of every wait, without what is secret', async () => {
    let answers = 0
    const server = await startServer((_, response) => {
      answers++
      response.writeHead(answers === 1 ? 503 : 422, { 'retry-after': '3', 'content-type': 'application/json' }).end('{}')
    })
    const [github, lines] = connect('token', 'acme/agents', server.url)
    if (github === undefined) throw new Error('there is no connection')
    const failure = await failureOf(github.getPullRequest(7, new AbortController().signal))
    await server.stop()
    expect(failure.message).toBe('reading the pull request 7 failed: GET /repos/***/agents/pulls/7 answered 422 (tried 2 times)')
    expect(lines).toEqual(['GitHub: GET /repos/***/agents/pulls/7 answered 503: trying again in 3 s.'])
  })

  it.each(['', 'acme', '/agents', 'acme/', 'acme/agents/x', 'x/acme/agents'])('is refused to the repository %j', (repository) => {
    const options = { token: 't', apiUrl: 'x', redact: String, effects: fakeEffects(), onRetry: () => undefined }
    expect(() => createGithub({ ...options, repository })).toThrow(new Error(`'${repository}' is not owner/name`))
  })
})
