import type { RequestFailure } from '../../../src/client/failure.ts'
import { createTransport, type Transport, type TransportOptions } from '../../../src/client/transport.ts'
import { virtualEffects } from './virtual-effects.ts'

export const API_KEY = 'key-of-the-workspace-4711'
export const DEPLOYMENT_ID = '11111111-1111-4111-8111-111111111111'
export const REVISION_ID = '22222222-2222-4222-8222-222222222222'
export const DEPLOYMENT_PATH = `/v2/deployments/${DEPLOYMENT_ID}`

export const deployment = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: DEPLOYMENT_ID,
  name: 'my-agent',
  source: 'git_host',
  source_config: { repo_url: 'https://example.com/org/repo' },
  source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
  secrets: [],
  latest_revision_id: REVISION_ID,
  active_revision_id: null,
  status: 'READY',
  ...changes,
})

export const revision = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: REVISION_ID,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  status: 'DEPLOYED',
  source: 'git_host',
  source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json', image_uri: null, repo_commit_sha: null },
  ...changes,
})

export function testTransport(options: Partial<TransportOptions> & { baseUrl: string }): Transport {
  return createTransport({
    headers: { 'X-Api-Key': API_KEY, 'X-Tenant-Id': 'workspace-1' },
    redact: (text) => text,
    userAgent: 'deploy-agent-server/test',
    effects: virtualEffects(),
    ...options,
  })
}

/** The failure that a request ends in; anything else fails the test. */
export async function failureOf(pending: Promise<unknown>): Promise<RequestFailure> {
  try {
    await pending
  } catch (error) {
    if (error instanceof Error && error.name === 'RequestFailure') return error as RequestFailure
    throw error
  }
  throw new Error('the request succeeded')
}

export const unaborted = (): AbortSignal => new AbortController().signal
