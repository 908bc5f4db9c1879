import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import type { Secret } from '../contract/secret.ts'
import type { Database } from './database/schema.ts'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** First byte of what is stored, so that the form can change one day. */
const VERSION = 1

const DO_NOT_OPEN = 'the secrets do not open'

/** Encrypts what must not be on the disk in clear. `context` is bound in: a value moved to another owner does not open. */
export interface SecretBox {
  seal(secrets: readonly Secret[], context: string): Buffer
  /** @throws {Error} when it was altered, belongs elsewhere, or was sealed with another key. */
  open(sealed: Buffer, context: string): Secret[]
}

export function createSecretBox(key: Buffer): SecretBox {
  return {
    seal: (secrets, context) => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
      const text = Buffer.concat([cipher.update(JSON.stringify(secrets), 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), text])
    },
    open: (sealed, context) => {
      // A shorter tag would still be checked, and could be guessed.
      const whole = sealed[0] === VERSION && sealed.length >= 1 + NONCE_BYTES + TAG_BYTES
      if (!whole) throw new Error(`${DO_NOT_OPEN}: they were cut, or stored by another version of the platform`)
      const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
      const tag = sealed.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES)
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context)).setAuthTag(tag)
      const text = decipher.update(sealed.subarray(1 + NONCE_BYTES + TAG_BYTES))
      try {
        return JSON.parse(Buffer.concat([text, decipher.final()]).toString('utf8')) as Secret[]
      } catch (error) {
        throw new Error(`${DO_NOT_OPEN}: they were altered, belong elsewhere, or were sealed with another key`, { cause: error })
      }
    },
  }
}

/** The key of this installation, made at the first start, outside the database. Losing the file loses the secrets. */
export async function readOrCreateKey(file: string): Promise<Buffer> {
  const existing = await readKey(file)
  if (existing !== null) return existing
  const fresh = `${file}.${randomUUID()}`
  await writeFile(fresh, randomBytes(KEY_BYTES).toString('base64'), { mode: 0o600, flush: true })
  await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(fresh, { force: true })
  return (await readKey(file)) as Buffer
}

const KEY_CHECK = 'key check'

/**
 * Makes sure that the secrets in the database were sealed with this key. Processes on one database server have data directories of their
 * own, and each would make a key of its own.
 * @throws {Error} that says what to do, when they were sealed with another one.
 */
export async function checkKey(db: Database, { secretBox, keyFile }: { secretBox: SecretBox; keyFile: string }): Promise<void> {
  await db
    .insertInto('installation')
    .values({ key_check: secretBox.seal([], KEY_CHECK) })
    .onConflict((conflict) => conflict.column('singleton').doNothing())
    .execute()
  const { key_check: sealed } = await db.selectFrom('installation').select('key_check').executeTakeFirstOrThrow()
  try {
    secretBox.open(sealed, KEY_CHECK)
  } catch (error) {
    throw new Error(
      `the secrets in this database were sealed with another key than the one in ${keyFile}: ` +
        'put there the file of that name from the data directory of the platform that used the database first',
      { cause: error },
    )
  }
}

async function readKey(file: string): Promise<Buffer | null> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== KEY_BYTES) throw new Error(`${file} does not hold a key of ${KEY_BYTES} bytes: bring back the file from your backup`)
  return key
}
