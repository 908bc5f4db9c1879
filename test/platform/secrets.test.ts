import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readOrCreateKey } from '../../src/platform/master-key.ts'
import { createSecretBox } from '../../src/platform/secrets.ts'

const box = createSecretBox(randomBytes(32))
const SECRETS = [{ name: 'TOKEN', value: 'p4ssw0rd-in-clear' }]

describe('sealed secrets', () => {
  it('open again to what they were, in their own context alone', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ name: fc.string(), value: fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()) })),
        fc.uuid(),
        fc.uuid(),
        (secrets, context, other) => {
          fc.pre(context !== other)
          const sealed = box.seal(secrets, context)
          expect(box.open(sealed, context)).toEqual(secrets)
          expect(() => box.open(sealed, other)).toThrow('the secrets do not open')
        },
      ),
    )
  })

  it('show nothing of what is in them, and look different every time', () => {
    const [first, second] = [box.seal(SECRETS, 'a'), box.seal(SECRETS, 'a')]
    expect(first.includes('p4ssw0rd')).toBe(false)
    expect(first.includes('TOKEN')).toBe(false)
    expect(first.equals(second)).toBe(false)
  })

  it('do not open when any one bit was changed, or when they were cut', () => {
    const sealed = box.seal(SECRETS, 'a')
    for (let byte = 0; byte < sealed.length; byte += 1) {
      const altered = Buffer.from(sealed)
      altered[byte] = (altered[byte] ?? 0) ^ (1 << (byte % 8))
      expect(() => box.open(altered, 'a')).toThrow('the secrets do not open')
      expect(() => box.open(sealed.subarray(0, byte), 'a')).toThrow('the secrets do not open')
    }
  })

  it('do not open with another key', () => {
    const other = createSecretBox(randomBytes(32))
    expect(() => other.open(box.seal(SECRETS, 'a'), 'a')).toThrow('the secrets do not open')
  })
})

describe('the key of an installation', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'platform-key-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('is made once, for its owner alone, and read again', async () => {
    const file = path.join(folder, 'secret.key')
    const key = await readOrCreateKey(file)
    expect(key).toHaveLength(32)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readOrCreateKey(file)).toEqual(key)
    expect(await readdir(folder)).toEqual(['secret.key'])
  })

  it('is one key for starts that come together', async () => {
    const keys = await Promise.all(Array.from({ length: 5 }, () => readOrCreateKey(path.join(folder, 'secret.key'))))
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1)
  })

  it('is never made anew over a damaged file', async () => {
    const file = path.join(folder, 'secret.key')
    await writeFile(file, 'c2hvcnQ=')
    await chmod(file, 0o600)
    await expect(readOrCreateKey(file)).rejects.toThrow(`${file} does not hold a key of 32 bytes: bring back the file from your backup`)
    expect(await readFile(file, 'utf8')).toBe('c2hvcnQ=')
  })
})
