import { beforeEach, describe, expect, it } from 'vitest'
import { createKeyCache, FOUND_MS, type KeyCache, KEYS_MAX, NOT_FOUND_MS } from '../../../src/platform/workspaces/key-cache.ts'

const hash = (name: string) => Buffer.from(name)

describe('a cache of keys', () => {
  let now: number
  let asked: string[]
  let answer: (name: string) => Promise<string | null>
  let cache: KeyCache<string>

  beforeEach(() => {
    now = 0
    asked = []
    answer = async (name) => (name.startsWith('right') ? `workspace of ${name}` : null)
    cache = createKeyCache({
      now: () => now,
      find: (key) => {
        asked.push(key.toString())
        return answer(key.toString())
      },
    })
  })

  it('remembers what was found for some seconds', async () => {
    for (const time of [0, 1, FOUND_MS - 1]) {
      now = time
      expect(await cache.get(hash('right'))).toBe('workspace of right')
    }
    expect(asked).toEqual(['right'])
    now = FOUND_MS
    await cache.get(hash('right'))
    expect(asked).toHaveLength(2)
  })

  it('remembers what was not found for a shorter time', async () => {
    await cache.get(hash('wrong'))
    now = NOT_FOUND_MS - 1
    expect(await cache.get(hash('wrong'))).toBeNull()
    expect(asked).toHaveLength(1)
    now = NOT_FOUND_MS
    await cache.get(hash('wrong'))
    expect(asked).toHaveLength(2)
  })

  it('asks once for questions that come together, and each for its own key', async () => {
    const names = ['right-1', 'right-2', 'wrong-1']
    const all = await Promise.all(Array.from({ length: 30 }, (_, index) => cache.get(hash(names[index % 3] as string))))
    expect(asked).toEqual(names)
    expect(all.slice(0, 3)).toEqual(['workspace of right-1', 'workspace of right-2', null])
  })

  it('is bounded, and a flood of wrong keys pushes no right one out', async () => {
    await cache.get(hash('right'))
    for (let index = 0; index <= KEYS_MAX; index += 1) await cache.get(hash(`wrong-${index}`))
    asked = []
    await cache.get(hash('right'))
    await cache.get(hash(`wrong-${KEYS_MAX}`))
    expect(asked).toEqual([])
    await cache.get(hash('wrong-0'))
    expect(asked).toEqual(['wrong-0'])
  })

  it('does not remember that it could not ask', async () => {
    answer = () => Promise.reject(new Error('away'))
    await expect(cache.get(hash('right'))).rejects.toThrow('away')
    answer = async () => 'back'
    expect(await cache.get(hash('right'))).toBe('back')
  })
})
