import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isValidGitRef, repoRefSchema } from '../../src/contract/git-ref.ts'

/** What git itself says of a branch of that name. */
const gitTakes = (branch: string) => spawnSync('git', ['check-ref-format', `refs/heads/${branch}`]).status === 0

const piece = fc.constantFrom(
  'a',
  'Z',
  '0',
  '-',
  '_',
  '.',
  '..',
  '/',
  '@',
  '@{',
  '{',
  '}',
  '~',
  '^',
  ':',
  '?',
  '*',
  '[',
  '\\',
  ' ',
  '\t',
  '\x7f',
  'ü',
  '.lock',
  'refs/',
  'heads/',
  '#',
  '%',
  '$(x)',
  '`',
  "'",
)
const names = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(''))

describe('a ref', () => {
  it('is judged as git judges it; only hyphens at the beginning, and @ alone, are refused besides', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(names, (name) => {
        const refusedBesides = name.startsWith('-') || name === '@'
        expect(isValidGitRef(name)).toBe(gitTakes(name) && !refusedBesides)
      }),
      { numRuns: 400 },
    )
  })

  it('is a branch or a tag in the contract, never another ref', () => {
    fc.assert(
      fc.property(names, fc.constantFrom('', 'refs/heads/', 'refs/tags/', 'refs/pull/'), (name, prefix) => {
        const { success } = repoRefSchema.safeParse(prefix + name)
        if (success) expect(prefix + name).toMatch(/^(?!refs\/)|^refs\/tags\//)
        if (prefix === 'refs/tags/' && isValidGitRef(name)) expect(success).toBe(true)
      }),
      { numRuns: 400 },
    )
  })
})
