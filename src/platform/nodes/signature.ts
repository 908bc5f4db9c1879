import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveKey } from '../master-key.ts'

/** Proves to a node that a request comes from another one. Never sent to an agent, and never believed from a client elsewhere. */
export const NODE_HEADER = 'x-platform-node'

/** How long a signature is good for, either way: the clocks of two machines differ. Milliseconds. */
const LIFETIME_MS = 5 * 60_000
const PURPOSE = 'requests between nodes'

/** Signs and verifies with keys that are derived from the master keys, which all nodes share. */
export interface NodeSignature {
  sign(subject: string): string
  verify(header: string | string[] | undefined, subject: string): boolean
}

export function createNodeSignature(masterKeys: readonly [Buffer, ...Buffer[]], now: () => number = Date.now): NodeSignature {
  const keys = masterKeys.map((key) => deriveKey(key, PURPOSE)) as [Buffer, ...Buffer[]]
  return {
    sign: (subject) => {
      const at = String(now())
      return `${at}.${digest(keys[0], at, subject).toString('base64url')}`
    },
    verify: (header, subject) => {
      const match = /^(\d{1,16})\.([\w-]{43})$/.exec(typeof header === 'string' ? header : '')
      if (match === null) return false
      const [, at = '', text = ''] = match
      if (Math.abs(now() - Number(at)) > LIFETIME_MS) return false
      const given = Buffer.from(text, 'base64url')
      return keys.some((key) => given.length === 32 && timingSafeEqual(given, digest(key, at, subject)))
    },
  }
}

function digest(key: Buffer, at: string, subject: string): Buffer {
  return createHmac('sha256', key).update(`${at}\n${subject}`).digest()
}
