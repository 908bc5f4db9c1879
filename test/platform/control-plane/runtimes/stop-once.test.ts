import { expect, test } from 'vitest'
import { stopOnce } from '../../../../src/platform/control-plane/runtimes/stop-once.ts'

test('an agent is stopped once, and once more only after a stop that failed', async () => {
  const graces: number[] = []
  const { stop, isStopping } = stopOnce(async (graceMs) => {
    graces.push(graceMs)
    if (graces.length === 1) throw new Error('the engine is away')
  })
  expect(isStopping()).toBe(false)
  const first = stop({ graceMs: 1 })
  expect([isStopping(), stop({ graceMs: 2 }) === first]).toEqual([true, true])
  await expect(first).rejects.toThrow('the engine is away')
  expect(isStopping()).toBe(false)
  await stop({ graceMs: 3 })
  await stop({ graceMs: 4 })
  expect([isStopping(), graces]).toEqual([true, [1, 3]])
})
