import { afterAll, describe, it } from 'vitest'
import { exampleOf, readErrorExamples, withoutChance, writeErrorExamples } from '../../scripts/error-examples.ts'
import { type ErrorCode, statusOf } from '../../src/action/report/error-codes.ts'
import { FAILURE_SCENES } from '../support/failure-scenes.ts'
import { flawsOf } from '../support/scene.ts'

/** The troubleshooting of the README shows what the bundle really prints. `UPDATE_EXAMPLES=1` writes the examples anew. */

const UPDATE = process.env['UPDATE_EXAMPLES'] === '1'

const recorded = readErrorExamples()
const printed: Partial<Record<ErrorCode, readonly string[]>> = {}

describe.concurrent('the example that the README has for', () => {
  it.for(Object.keys(FAILURE_SCENES) as ErrorCode[])('%s is what the bundle prints', async (code, { expect }) => {
    await FAILURE_SCENES[code](async (result, secrets) => {
      expect(await flawsOf(result, { status: statusOf(code), code }, secrets)).toEqual([])
      const error = result.annotations.find(({ level }) => level === 'error')
      printed[code] = exampleOf(error?.message ?? '')
    })
    if (!UPDATE)
      expect(withoutChance(printed[code] ?? []), 'UPDATE_EXAMPLES=1 accepts the change').toBe(withoutChance(recorded[code]))
  })
})

afterAll(() => {
  if (!UPDATE) return
  // What differs by chance alone stays as it is: nobody has to read that in a diff.
  const changed = Object.entries(printed).filter(
    ([code, lines]) => withoutChance(lines) !== withoutChance(recorded[code as ErrorCode]),
  )
  writeErrorExamples({ ...recorded, ...Object.fromEntries(changed) })
})
