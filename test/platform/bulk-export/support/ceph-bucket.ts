import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  CreateBucketCommand,
  DeleteBucketPolicyCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import type { Ceph, CephUser } from '../../../support/ceph.ts'

/** What a user may do with a bucket; the names are those of the store's policies. */
export type Permission = 'PutObject' | 'DeleteObject' | 'GetObject' | 'AbortMultipartUpload'
const PERMISSIONS: readonly Permission[] = ['PutObject', 'DeleteObject', 'GetObject', 'AbortMultipartUpload']

/** A bucket of the store as its owner sees it. */
export interface CephBucket {
  readonly name: string
  /** From now on a user may do these and no others. */
  allow(user: CephUser, permissions: readonly Permission[]): Promise<void>
  /** From now on only the owner may do anything. */
  close(): Promise<void>
  /** Keys of all objects, sorted. */
  keys(): Promise<string[]>
  /** Keys of all multipart uploads that are neither completed nor aborted. */
  uploads(): Promise<string[]>
  /** Objects as files of this machine, in the order of the keys. */
  download(keys: readonly string[]): Promise<string[]>
  stop(): Promise<void>
}

export async function createCephBucket(ceph: Ceph, { owner, name }: { owner: CephUser; name: string }): Promise<CephBucket> {
  const Bucket = name
  const client = new S3Client({
    region: 'us-east-1',
    endpoint: ceph.url,
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    credentials: { accessKeyId: owner.access_key_id, secretAccessKey: owner.secret_access_key },
  })
  const directory = await mkdtemp(path.join(tmpdir(), 'ceph-objects-'))
  await client.send(new CreateBucketCommand({ Bucket }))
  return {
    name,
    allow: async (user, permissions) => {
      const Principal = { AWS: [`arn:aws:iam:::user/${user.name}`] }
      const Resource = [`arn:aws:s3:::${name}`, `arn:aws:s3:::${name}/*`]
      const action = (one: Permission) => `s3:${one}`
      // What is not allowed has to be denied: to its own objects a user would have every right.
      const denied = PERMISSIONS.filter((one) => !permissions.includes(one))
      const Statement = [
        ...(permissions.length === 0 ? [] : [{ Effect: 'Allow', Principal, Resource, Action: permissions.map(action) }]),
        ...(denied.length === 0 ? [] : [{ Effect: 'Deny', Principal, Resource, Action: denied.map(action) }]),
      ]
      await client.send(new PutBucketPolicyCommand({ Bucket, Policy: JSON.stringify({ Version: '2012-10-17', Statement }) }))
    },
    close: async () => void (await client.send(new DeleteBucketPolicyCommand({ Bucket }))),
    keys: async () => {
      const keys: string[] = []
      let token: string | undefined
      do {
        const page = await client.send(
          new ListObjectsV2Command({ Bucket, ...(token === undefined ? {} : { ContinuationToken: token }) }),
        )
        keys.push(...(page.Contents ?? []).map(({ Key = '' }) => Key))
        token = page.NextContinuationToken
      } while (token !== undefined)
      return keys.toSorted()
    },
    uploads: async () =>
      ((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []).map(({ Key = '' }) => Key),
    download: async (keys) => {
      const files: string[] = []
      for (const Key of keys) {
        const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
        const file = path.join(directory, `${files.length}-${path.basename(Key)}`)
        await writeFile(file, (await Body?.transformToByteArray()) ?? '')
        files.push(file)
      }
      return files
    },
    stop: async () => {
      client.destroy()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

interface TemporaryCredentials {
  readonly access_key_id: string
  readonly secret_access_key: string
  readonly session_token: string
}

/** Credentials of a user that end in fifteen minutes, by the store's own token service. */
export async function issueToken(ceph: Ceph, user: CephUser): Promise<TemporaryCredentials> {
  const Statement = [{ Effect: 'Allow', Action: 'sts:GetSessionToken', Resource: '*' }]
  await askService(ceph, user, 'iam', {
    Action: 'PutUserPolicy',
    PolicyName: 'tokens',
    UserName: user.name,
    PolicyDocument: JSON.stringify({ Version: '2012-10-17', Statement }),
  })
  const text = await askService(ceph, user, 'sts', { Action: 'GetSessionToken', DurationSeconds: '900', Version: '2011-06-15' })
  const value = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? ''
  return {
    access_key_id: value('AccessKeyId'),
    secret_access_key: value('SecretAccessKey'),
    session_token: value('SessionToken'),
  }
}

/** A signed request to a service of the store that is not S3. */
async function askService(ceph: Ceph, user: CephUser, service: string, parameters: Record<string, string>): Promise<string> {
  const body = new URLSearchParams(parameters).toString()
  const stamp = `${new Date().toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  const scope = [stamp.slice(0, 8), 'us-east-1', service, 'aws4_request']
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const sign = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest()
  const type = 'application/x-www-form-urlencoded'
  const names = 'content-type;host;x-amz-date'
  const headers = `content-type:${type}\nhost:127.0.0.1:${ceph.port}\nx-amz-date:${stamp}\n`
  const canonical = sha256(`POST\n/\n\n${headers}\n${names}\n${sha256(body)}`)
  const key = scope.reduce<Buffer | string>(sign, `AWS4${user.secret_access_key}`)
  const signature = sign(key, `AWS4-HMAC-SHA256\n${stamp}\n${scope.join('/')}\n${canonical}`).toString('hex')
  const proof = `Credential=${user.access_key_id}/${scope.join('/')}, SignedHeaders=${names}, Signature=${signature}`
  const response = await fetch(ceph.url, {
    method: 'POST',
    headers: { 'content-type': type, 'x-amz-date': stamp, authorization: `AWS4-HMAC-SHA256 ${proof}` },
    body,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`the store's ${service} answered ${response.status}: ${text}`)
  return text
}
