import { describe, expect, it } from 'vitest'
import { notesOf, planRelease } from '../../scripts/release.ts'

const changelog =
  '# Changelog\n\n## Unreleased\n\n- Later.\n\n## 1.2.0 - 2026-11-20\n\n### Added\n\n- This.\n\n## [1.1.0]\n\n- That.\n'

describe('the plan of a release', () => {
  it.each([
    ['a new version with a heading', '1.2.0', ['v1.1.0', 'v1'], true],
    ['the first one', '1.2.0', [], true],
    ['one that is tagged already', '1.2.0', ['v1.2.0'], false],
    ['one without a heading', '1.3.0', ['v1.2.0'], false],
    ['one that only looks like a heading', '1.2', [], null],
    ['one older than what is there', '1.1.0', ['v1.2.0', 'v1.10.0'], null],
    ['one newer by number, not by letters', '1.2.0', ['v1.1.9', 'v0.10.0'], true],
  ] as const)('%s', (_what, version, tags, release) => {
    const plan = () => planRelease({ version, changelog, tags })
    if (release === null) expect(plan).toThrow(/package.json has the version/)
    else expect(plan()).toEqual({ release, version: `v${version}`, major: 'v1' })
  })

  it('takes the notes from the changelog', () => {
    expect(notesOf(changelog, '1.2.0')).toBe('### Added\n\n- This.\n')
    expect(notesOf(changelog, '1.1.0')).toBe('- That.\n')
    expect(notesOf(changelog, '1.0.0')).toBe(null)
  })
})
