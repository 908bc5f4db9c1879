import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gantt } from '../../../src/action/report/gantt.ts'

describe('gantt', () => {
  it('draws one bar for each status, in the sections of a revision', () => {
    const chart = gantt(
      [
        { status: 'QUEUED', at: 1000 },
        { status: 'BUILDING', at: 3000 },
        { status: 'BUILD_FAILED', at: 19_000 },
      ],
      19_000,
    )
    expect(chart.split('\n')).toEqual([
      '```mermaid',
      'gantt',
      '  dateFormat x',
      '  axisFormat %H:%M:%S',
      '  todayMarker off',
      '  section Queue',
      '  QUEUED :s0, 1000, 3000',
      '  section Build',
      '  BUILDING :s1, 3000, 19000',
      '  BUILD_FAILED :crit, milestone, s2, 19000, 19000',
      '```',
    ])
  })

  it('has no two ticks within one second', () => {
    const ticks = (end: number) =>
      gantt([{ status: 'QUEUED', at: 1000 }], end)
        .split('\n')
        .filter((line) => line.includes('tickInterval'))
    expect(ticks(10_999)).toEqual(['  tickInterval 1second'])
    expect(ticks(11_000)).toEqual([])
  })

  it('draws nothing when nothing was seen', () => {
    expect(gantt([], 1000)).toBe('')
  })

  it('keeps one line and one task for each status, whatever its name', () => {
    const name = fc.string({ unit: fc.constantFrom('`', '\n', ':', ';', '#', '%', 'title', 'section', ' ', 'X', ',', '-') })
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 8 }), (names) => {
        const lines = gantt(
          names.map((status, at) => ({ status, at })),
          100,
        ).split('\n')
        expect(lines.filter((line) => / :.*s\d+, \d+, \d+$/.test(line))).toHaveLength(names.length)
        expect(lines.filter((line) => line.includes('`'))).toHaveLength(2)
        expect(lines.slice(6, -1).every((line) => /^ {2}(section Other|status[\w -]* :s\d+, \d+, \d+)$/.test(line))).toBe(true)
      }),
    )
  })
})
