import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { deploymentNameSchema, normaliseDeploymentName } from '../../../src/contract/name.ts'
import { commonPart, previewName, PULL_REQUEST_MAX, pullRequestOf } from '../../../src/action/preview/name.ts'

const BASES = [
  'a',
  'agent',
  'agent-pr-7',
  `${'a'.repeat(29)}-${'b'.repeat(20)}-${'c'.repeat(12)}`,
  ...lengths().map((length) => 'x'.repeat(length)),
]
const NUMBERS = [1, 9, 10, 4711, 999_999, PULL_REQUEST_MAX]

function lengths(): number[] {
  return Array.from({ length: 63 }, (_, index) => index + 1)
}

describe('previewName', () => {
  it('is the name and the number, wherever there is room', () => {
    expect(previewName('agent', 7)).toBe('agent-pr-7')
    expect(previewName('x'.repeat(58), 7)).toBe(`${'x'.repeat(58)}-pr-7`)
    expect(previewName('x'.repeat(59), 7)).not.toContain('x'.repeat(59))
  })

  it.each([
    ['where the cut is in a word', `a-${'b'.repeat(61)}`, `a-${'b'.repeat(47)}`],
    ['where the cut is after a hyphen', `a-${'b'.repeat(46)}-${'c'.repeat(14)}`, `a-${'b'.repeat(46)}`],
    ['where the cut is after two', `a-${'b'.repeat(45)}--${'c'.repeat(14)}`, `a-${'b'.repeat(45)}`],
  ])('has the beginning of a base that is too long and a hash of all of it, %s', (_, base, beginning) => {
    const hash = createHash('sha256').update(base).digest('hex').slice(0, 8)
    expect(previewName(base, 7)).toBe(`${beginning}-${hash}-pr-7`)
  })

  it.each(BASES)('of %s is a name that the service takes as it is, ends with the number, and is found again', (base) => {
    for (const number of NUMBERS) {
      const name = previewName(base, number)
      expect(deploymentNameSchema.safeParse(name).success).toBe(true)
      expect(normaliseDeploymentName(name)).toBe(name)
      expect(name.endsWith(`-pr-${number}`)).toBe(true)
      expect(name).toContain(commonPart(base))
      expect(pullRequestOf(name, base)).toBe(number)
    }
  })

  it('is another one for each base and each number', () => {
    const long = lengths().map((index) => `${'x'.repeat(55)}${String(index).padStart(8, '0')}`)
    const names = [...BASES, ...long].flatMap((base) => NUMBERS.map((number) => previewName(base, number)))
    const pairs = new Set([...BASES, ...long].flatMap((base) => NUMBERS.map((number) => `${base} ${number}`)))
    expect(new Set(names).size).toBe(pairs.size)
  })
})

describe('commonPart', () => {
  it.each([
    ['agent', 'agent-pr-'],
    ['x'.repeat(49), `${'x'.repeat(49)}-pr-`],
    ['x'.repeat(50), 'x'.repeat(40)],
    [`${'x'.repeat(38)}--${'y'.repeat(20)}`, 'x'.repeat(38)],
  ])('of %s is as long as it can be', (base, expected) => {
    expect(commonPart(base)).toBe(expected)
  })
})

describe('pullRequestOf', () => {
  it.each([
    'agent',
    'agent-pr-',
    'agent-pr-0',
    'agent-pr-07',
    'agent-pr-7x',
    'agent-pr-7-pr-8',
    'my-agent-pr-7',
    'agent-pr--7',
    'agent-pr-99999999999',
    'agent-pr-2147483648',
    'agents-pr-7',
    'agent-prod',
    '',
  ])('knows that %s is no preview of agent', (name) => {
    expect(pullRequestOf(name, 'agent')).toBeUndefined()
  })

  it('does not take the preview of a cut base for that of its beginning', () => {
    const base = 'y'.repeat(63)
    expect(pullRequestOf(previewName(base, 7), 'y'.repeat(50))).toBeUndefined()
  })
})
