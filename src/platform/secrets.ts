import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Secret } from '../contract/secret.ts'

const ALGORITHM = 'aes-256-gcm'
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

/** A box that seals with `key`; it opens with `older` keys too, while what they sealed is not yet sealed anew. */
export function createSecretBox(key: Buffer, older: readonly Buffer[] = []): SecretBox {
  return older.length === 0 ? boxOf(key) : withOlder(boxOf(key), older.map(boxOf))
}

function withOlder(newest: SecretBox, older: readonly SecretBox[]): SecretBox {
  return {
    seal: newest.seal,
    open: (sealed, context) => {
      for (const box of [newest, ...older.slice(0, -1)]) {
        try {
          return box.open(sealed, context)
        } catch {
          // The next key may fit.
        }
      }
      return (older.at(-1) as SecretBox).open(sealed, context)
    },
  }
}

function boxOf(key: Buffer): SecretBox {
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
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(context))
        .setAuthTag(tag)
      const text = decipher.update(sealed.subarray(1 + NONCE_BYTES + TAG_BYTES))
      try {
        return JSON.parse(Buffer.concat([text, decipher.final()]).toString('utf8')) as Secret[]
      } catch (error) {
        throw new Error(`${DO_NOT_OPEN}: they were altered, belong elsewhere, or were sealed with another key`, { cause: error })
      }
    },
  }
}
