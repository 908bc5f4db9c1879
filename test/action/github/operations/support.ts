import { expect } from 'vitest'
import type { Repository } from '../../../../src/action/github/operations/repository.ts'
import type { GithubRequest, Send } from '../../../../src/action/github/request.ts'

export const HERE = { owner: 'acme', repo: 'agents' }
export const { signal } = new AbortController()

export type Sent = Omit<GithubRequest<unknown>, 'schema' | 'signal'>
export type Reply = { body: unknown; link?: string } | Error

/** Answers in turn, and keeps what was asked. An answer that its schema does not take is one of the test's mistakes. */
export function fakeSend(...replies: Reply[]): { asked: Sent[]; here: Repository } {
  const asked: Sent[] = []
  const send: Send = async ({ schema, signal: given, ...request }) => {
    expect(given).toBe(signal)
    asked.push(request)
    const reply = replies.shift()
    if (reply === undefined) throw new Error(`nobody expected ${request.route}`)
    if (reply instanceof Error) throw reply
    return { body: schema.parse(reply.body), link: reply.link }
  }
  return { asked, here: { ...HERE, send } }
}

/** A deployment record, as GitHub has it. */
export const record = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: 1,
  sha: 'c0ffee',
  ref: 'main',
  task: 'deploy',
  environment: 'staging',
  payload: { step: 'one' },
  created_at: '2026-01-02T03:04:05Z',
  ...changes,
})
