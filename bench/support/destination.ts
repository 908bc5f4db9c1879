import { randomUUID } from 'node:crypto'
import type { Database } from '../../src/platform/database/schema.ts'
import { createSecretBox } from '../../src/platform/secrets.ts'

/** The master key of all that exports to a destination of the benches. */
export const SECRET_KEY = Buffer.alloc(32, 1)
export const secretBox = createSecretBox(SECRET_KEY)

/** Makes a destination in the bucket that listens at a port, straight in the store. @returns its id */
export async function createDestination(
  db: Database,
  { workspaceId, port }: { workspaceId: string; port: number },
): Promise<string> {
  const id = randomUUID()
  const config = { bucket_name: 'bench', prefix: '', endpoint_url: `http://127.0.0.1:${port}`, include_bucket_in_prefix: false }
  const credentials = [
    { name: 'access_key_id', value: 'bench' },
    { name: 'secret_access_key', value: 'bench' },
  ]
  await db
    .insertInto('export_destinations')
    .values({
      id,
      workspace_id: workspaceId,
      destination_type: 's3',
      display_name: 'bench',
      config: JSON.stringify(config),
      credentials: secretBox.seal(credentials, id),
      credentials_keys: '[]',
    })
    .execute()
  return id
}
