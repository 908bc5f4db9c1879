import { createHash } from 'node:crypto'
import { API_KEY_HEADER, TENANT_ID_HEADER } from '../../contract/headers.ts'
import type { Database } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import { createKeyCache } from './key-cache.ts'

/** Who asks: everything that is listed, read or changed is confined to this workspace. */
export interface Caller {
  readonly workspaceId: string
  readonly plan: string
  readonly scope: KeyScope
}

/** What a key opens: everything of its workspace, or only the ways in for runs, which is what a deployed agent gets. */
export type KeyScope = 'full' | 'ingest'

/** Longest key that is looked up; ours are far shorter. */
const KEY_MAX = 512

/** Keys are long and random, so one round of a plain hash is enough; the key itself is never stored. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest()
}

/** Reads one header; `undefined` where it is absent. Names compare case-insensitively (specification 5.5). */
export type HeaderReader = (name: string) => string | null | undefined

/** Says who asks, by the headers of a request. */
export type Authenticate = (header: HeaderReader) => Promise<Caller>

/**
 * The workspace of a request (specification 5): by `X-Api-Key`, or by the same key as a bearer token. `X-Tenant-Id`, where it is sent,
 * must name the key's own workspace. Right and wrong keys cost the same; what was found counts for some seconds, so that the traffic of
 * agents does not ask the database at every request.
 * @throws {HttpProblem} 401 without a valid key, 403 for another workspace's id.
 */
export function createAuthenticate(db: Database, { now = Date.now }: { now?: () => number } = {}): Authenticate {
  const cache = createKeyCache<Caller>({ find: (hash) => findCaller(db, hash), now })
  return async (header) => {
    const key = header(API_KEY_HEADER) || bearerToken(header('Authorization'))
    if (!key) throw unauthorised(`No API key: send it in the ${API_KEY_HEADER} header.`)
    const caller = key.length > KEY_MAX ? null : await cache.get(hashApiKey(key))
    if (caller === null) throw unauthorised('The API key is not valid here.')
    const tenantId = header(TENANT_ID_HEADER)
    if (tenantId && tenantId.toLowerCase() !== caller.workspaceId) {
      throw new HttpProblem(403, `The API key does not belong to the workspace in the ${TENANT_ID_HEADER} header.`)
    }
    return caller
  }
}

/** Whether a key is anybody's. @throws what the database throws when it cannot be asked. */
export async function isKnownKey(authenticate: Authenticate, key: string): Promise<boolean> {
  try {
    await authenticate((name) => (name === API_KEY_HEADER ? key : undefined))
    return true
  } catch (error) {
    if (error instanceof HttpProblem) return false
    throw error
  }
}

/** Keeps keys that only let runs in from everything else. @throws {HttpProblem} 403 for one of them. */
export function requireFullKey(caller: Caller): Caller {
  if (caller.scope !== 'full') throw new HttpProblem(403, 'The API key is one that a deployed agent traces with: it opens nothing else.')
  return caller
}

async function findCaller(db: Database, hash: Buffer): Promise<Caller | null> {
  const caller = await db
    .selectFrom('api_keys')
    .innerJoin('workspaces', 'workspaces.id', 'api_keys.workspace_id')
    .select(['workspaces.id as workspaceId', 'workspaces.plan', 'api_keys.scope'])
    .where('api_keys.key_hash', '=', hash)
    .executeTakeFirst()
  return caller ?? null
}

function unauthorised(detail: string): HttpProblem {
  return new HttpProblem(401, detail, { 'WWW-Authenticate': 'Bearer' })
}

/** The token of an `Authorization` header with the scheme Bearer. */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}
