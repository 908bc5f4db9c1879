import { describe, expect, it } from 'vitest'
import { readGithubContext } from '../../../src/action/github/context.ts'

const ENV = {
  GITHUB_EVENT_NAME: ' push ',
  GITHUB_REF: 'refs/heads/main',
  GITHUB_SHA: 'abc',
  GITHUB_REPOSITORY: 'acme/agents',
  GITHUB_SERVER_URL: 'https://ghe.example//',
  GITHUB_API_URL: 'https://ghe.example//api/v3//',
  GITHUB_RUN_ID: '5',
  GITHUB_RUN_ATTEMPT: '2',
  GITHUB_ACTION_REPOSITORY: 'acme/action',
  GITHUB_EVENT_PATH: '/event.json',
}

const EMPTY = {
  eventName: '',
  ref: '',
  sha: '',
  repository: '',
  serverUrl: 'https://github.com',
  apiUrl: 'https://api.github.com',
  runId: '',
  runAttempt: '',
  actionRepository: '',
  payload: {},
}

describe('the context of the runner', () => {
  it('is read from its environment, without spaces around it and slashes behind the addresses', () => {
    const read: string[] = []
    const context = readGithubContext(ENV, (path) => (read.push(path), '{"action":"opened"}'))
    expect(context).toEqual({
      eventName: 'push',
      ref: 'refs/heads/main',
      sha: 'abc',
      repository: 'acme/agents',
      serverUrl: 'https://ghe.example',
      apiUrl: 'https://ghe.example//api/v3',
      runId: '5',
      runAttempt: '2',
      actionRepository: 'acme/action',
      payload: { action: 'opened' },
    })
    expect(read).toEqual(['/event.json'])
  })

  it.each([[{}], [{ GITHUB_SERVER_URL: ' ', GITHUB_API_URL: '/', GITHUB_EVENT_PATH: ' ' }]])(
    'is that of github.com in %j',
    (env) => {
      const context = readGithubContext(env, (path) => {
        if (path !== '') throw new Error('there is nothing to read')
        return '{"read":true}'
      })
      expect(context).toEqual(EMPTY)
    },
  )

  it.each(['null', '"text"', '7', '[1]', '[]', '', '{'])('has an empty payload where the file says %j', (text) => {
    expect(readGithubContext(ENV, () => text).payload).toEqual({})
  })
})
