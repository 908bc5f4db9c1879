import { describe, expect, it } from 'vitest'
import { parseMoment, resolveMoment } from '../../../src/action/export/moment.ts'

const NOW = Date.parse('2026-08-20T12:00:00Z')

describe('a moment', () => {
  it.each([
    ['now', '2026-08-20T12:00:00.000Z'],
    ['-24h', '2026-08-19T12:00:00.000Z'],
    ['-7d', '2026-08-13T12:00:00.000Z'],
    ['-1h30m', '2026-08-20T10:30:00.000Z'],
    ['2026-08-19', '2026-08-19T00:00:00.000000Z'],
    ['2026-08-19T02:00:00+02:00', '2026-08-19T00:00:00.000000Z'],
    ['2026-08-19T02:00:00.123456', '2026-08-19T02:00:00.123456Z'],
  ])('%s is %s', (text, sent) => {
    const parsed = parseMoment(text)
    if (!('value' in parsed)) throw new Error(parsed.problem)
    expect(resolveMoment(parsed.value, NOW)).toBe(sent)
  })

  it.each([['-'], ['-h'], ['-1m1h'], ['24h'], ['1700000000'], ['2026-02-30'], ['1026-01-01'], ['-99999d'], ['NOW'], ['tomorrow']])(
    '%s is none',
    (text) => expect(parseMoment(text)).toHaveProperty('problem'),
  )
})
