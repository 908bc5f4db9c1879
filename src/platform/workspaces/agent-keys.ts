import { randomBytes, randomUUID } from 'node:crypto'
import type { Database } from '../database/schema.ts'
import { hashApiKey } from './authenticate.ts'

/** Makes the key that one agent process traces with. It lets runs in and opens nothing else, and it ends with the agent's row. */
export async function issueAgentKey(db: Database, { workspaceId, agentId }: { workspaceId: string; agentId: string }): Promise<string> {
  const key = `das_agent_${randomBytes(30).toString('base64url')}`
  await db
    .insertInto('api_keys')
    .values({ id: randomUUID(), workspace_id: workspaceId, key_hash: hashApiKey(key), scope: 'ingest', agent_id: agentId })
    .execute()
  return key
}
