import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import S3rver from 's3rver'
import { type BucketProxy, startBucketProxy } from './bucket-proxy.ts'

export type { BucketFault, Operation } from './bucket-proxy.ts'

export interface BucketServer extends BucketProxy {
  readonly bucket: string
  /** Keys of all objects, sorted. */
  keys(): Promise<string[]>
  /** A file of the machine with the bytes of an object. */
  fileOf(key: string): string
  stop(): Promise<void>
}

export const ACCESS_KEY = { access_key_id: 'S3RVER', secret_access_key: 'S3RVER' } as const

/** A real S3-compatible store in this process, behind a proxy that can break things. */
export async function startBucketServer(bucket = 'traces'): Promise<BucketServer> {
  const directory = await mkdtemp(path.join(tmpdir(), 'bucket-'))
  const store = new S3rver({ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets: [{ name: bucket }] })
  const { port: storePort } = (await store.run()) as AddressInfo
  const proxy = await startBucketProxy({ storePort, answered: ['abort-upload'] })
  return Object.assign(proxy, {
    bucket,
    keys: async () => {
      const entries = await readdir(path.join(directory, bucket), { recursive: true, withFileTypes: true })
      return entries
        .filter((entry) => entry.isFile() && entry.name.endsWith(OBJECT_SUFFIX))
        .map((entry) =>
          path.relative(path.join(directory, bucket), path.join(entry.parentPath, entry.name)).slice(0, -OBJECT_SUFFIX.length),
        )
        .filter((key) => !key.startsWith('.s3rver_uploads'))
        .toSorted()
    },
    fileOf: (key: string) => path.join(directory, bucket, `${key}${OBJECT_SUFFIX}`),
    stop: async () => {
      await proxy.down()
      await store.close()
      await rm(directory, { recursive: true, force: true })
    },
  })
}

/** How the store names the files of its objects. */
const OBJECT_SUFFIX = '._S3rver_object'
