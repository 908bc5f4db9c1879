import { hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import type { Database } from './database/schema.ts'
import { createSecretBox, type SecretBox } from './secrets.ts'

const KEY_BYTES = 32
const VARIABLE = 'PLATFORM_SECRET_KEY'
const FILE_VARIABLE = 'PLATFORM_SECRET_KEY_FILE'

/** The keys that secrets are sealed with, the newest first: it seals, and all of them open. */
export interface MasterKeys {
  readonly keys: readonly [Buffer, ...Buffer[]]
  /** Where they come from, for messages. */
  readonly from: string
  readonly secretBox: SecretBox
}

/**
 * Reads the master keys: from `PLATFORM_SECRET_KEY`, else from the file that `PLATFORM_SECRET_KEY_FILE` names, else from the data directory,
 * where one is made at the first start. Several are separated by commas or lines, the newest first; each is 32 bytes in Base64.
 * @throws {Error} that names the place and never the key.
 */
export async function readMasterKeys({
  environment,
  keyFile,
  mayCreate = async () => true,
}: {
  environment: Readonly<Record<string, string | undefined>>
  keyFile: string
  /** Asked before a key is made: false when the database has secrets that a new key could not open. */
  mayCreate?: () => Promise<boolean>
}): Promise<MasterKeys> {
  const given = environment[VARIABLE]
  if (given) return masterKeys(given, VARIABLE)
  const file = environment[FILE_VARIABLE] || keyFile
  const text = await readText(file)
  if (text !== null) return masterKeys(text, file)
  if (file !== keyFile) throw new Error(`${FILE_VARIABLE}: there is no file ${file}`)
  if (!(await mayCreate()))
    throw new Error(`the secrets in this database were sealed with a key that is not here, there is no ${keyFile}: ${GIVE_IT}`)
  return masterKeys((await readOrCreateKey(keyFile)).toString('base64'), keyFile)
}

function masterKeys(text: string, from: string): MasterKeys {
  const [newest, ...older] = text
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map((entry) => parseKey(entry, from))
  if (newest === undefined)
    throw new Error(`${from} does not hold a key of ${KEY_BYTES} bytes: bring back the file from your backup`)
  return { keys: [newest, ...older], from, secretBox: createSecretBox(newest, older) }
}

/** The key of this installation, made at the first start, outside the database. Losing the file loses the secrets. */
export async function readOrCreateKey(file: string): Promise<Buffer> {
  const existing = await readText(file)
  if (existing !== null) return masterKeys(existing, file).keys[0]
  const fresh = `${file}.${randomUUID()}`
  await writeFile(fresh, randomBytes(KEY_BYTES).toString('base64'), { mode: 0o600, flush: true })
  await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(fresh, { force: true })
  return masterKeys((await readText(file)) ?? '', file).keys[0]
}

/** A key for one purpose, which tells nothing of the master key. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, KEY_BYTES))
}

/** A name that tells keys apart and nothing of them. */
export function nameOfKey(masterKey: Buffer): string {
  return deriveKey(masterKey, 'name of the key').toString('hex').slice(0, 12)
}

const KEY_CHECK = 'key check'
const GIVE_IT =
  `give the key in ${VARIABLE}, or in a file that ${FILE_VARIABLE} names, or put the file secret.key of the data directory of the platform ` +
  'that used the database first into this one'

/** True when this database has a key already. */
export async function hasKey(db: Database): Promise<boolean> {
  return (await db.selectFrom('installation').select('singleton').executeTakeFirst()) !== undefined
}

/**
 * Makes sure that the secrets in the database were sealed with one of these keys. Processes on one database server have data directories of
 * their own, and each would make a key of its own.
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
    throw new Error(`the secrets in this database were sealed with another key than the one in ${keyFile}: ${GIVE_IT}`, {
      cause: error,
    })
  }
}

/** Seals the check anew with the newest key. @returns whether it was sealed with an older one. */
export async function resealKeyCheck(db: Database, { newest, all }: { newest: SecretBox; all: SecretBox }): Promise<boolean> {
  const { key_check: sealed } = await db.selectFrom('installation').select('key_check').executeTakeFirstOrThrow()
  if (opens(newest, sealed, KEY_CHECK)) return false
  all.open(sealed, KEY_CHECK)
  await db
    .updateTable('installation')
    .set({ key_check: newest.seal([], KEY_CHECK) })
    .where('key_check', '=', sealed)
    .execute()
  return true
}

export function opens(box: SecretBox, sealed: Buffer, context: string): boolean {
  try {
    box.open(sealed, context)
    return true
  } catch {
    return false
  }
}

function parseKey(text: string, from: string): Buffer {
  const key = Buffer.from(text, 'base64')
  if (key.length !== KEY_BYTES)
    throw new Error(`${from} does not hold a key of ${KEY_BYTES} bytes: bring back the file from your backup`)
  return key
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
