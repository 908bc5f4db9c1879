import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRedactor } from '../../../src/action/masks.ts'
import { annotation } from '../../../src/action/report/annotations.ts'
import { createLog } from '../../../src/action/report/log.ts'
import { plainLine, safeLines } from '../../../src/action/report/plain.ts'

function recordedLog() {
  const written: string[] = []
  const redactor = createRedactor()
  const log = createLog({ write: (line) => written.push(line), redactor, token: randomUUID })
  return { log, written, redactor }
}

/** The lines that a runner would obey: commands outside of stopped blocks. */
function commands(written: readonly string[]): string[] {
  const obeyed: string[] = []
  let stop: string | undefined
  for (const line of written.flatMap((text) => text.split(/\r\n|\r|\n/))) {
    if (stop !== undefined) {
      if (line === `::${stop}::`) stop = undefined
      continue
    }
    const match = /^\s*::stop-commands::(.*)$/.exec(line)
    if (match !== null) stop = match[1]
    else if (/^\s*::|##\[/.test(line)) obeyed.push(line)
  }
  expect(stop).toBeUndefined()
  return obeyed
}

const hostile = fc.oneof(
  fc.string({
    unit: fc.constantFrom(
      ':',
      '#',
      '[',
      ']',
      '\n',
      '\r',
      ' ',
      'e',
      'error',
      '::error::',
      '##[error]',
      '::stop-commands::x',
      '%0A',
      '\x1b[31m',
      '\u2028',
    ),
  }),
  fc.string({ unit: 'binary' }),
)

describe('the log', () => {
  it('lets no text act as a workflow command', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const { log, written } = recordedLog()
        log.info(text)
        expect(commands(written)).toEqual([])
      }),
    )
  })

  it('lets no text act inside a group, in its title, or in an annotation', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const { log, written } = recordedLog()
        log.group(text, [text, text])
        log.warning(text)
        log.error({ title: text, message: text })
        expect(commands(written).map((line) => /^::(\w+)/.exec(line)?.[1])).toEqual(['group', 'endgroup', 'warning', 'error'])
      }),
    )
  })

  it('redacts a value that only shows when its control characters are gone, and never cuts one in half', () => {
    const { log, written, redactor } = recordedLog()
    redactor.add(['hunter2-secret'])
    log.info('hunter2\x1b[0m-secret')
    log.group('log', ['hunter2-\x1b[31msecret', `${'x'.repeat(1990)}hunter2-secret`])
    expect(written.join('\n')).not.toContain('hunter2')
  })

  it('redacts what it is told to, wherever it stands', () => {
    const { log, written, redactor } = recordedLog()
    redactor.add(['hunter2'])
    log.info('key hunter2')
    log.group('hunter2', ['hunter2 in a line'])
    log.warning('hunter2')
    log.error({ title: 'hunter2', message: 'a\nhunter2' })
    expect(written.join('\n')).not.toContain('hunter2')
  })
})

describe('annotation', () => {
  it('encodes what would end the title or the command', () => {
    expect(annotation('error', { title: 'a: b, c%', message: '100%\nnext' })).toBe('::error title=a%3A b%2C c%25::100%25%0Anext')
  })

  it('is never longer than the runner shows', () => {
    const text = annotation('error', { title: 't', message: 'x'.repeat(10_000) })
    expect(text.length).toBe('::error title=t::'.length + 4096)
  })
})

describe('plain text', () => {
  it('has no control characters and no escape sequences, and is bounded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(plainLine(text)).not.toMatch(/[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]/)
      }),
    )
    expect(plainLine('x'.repeat(5000))).toHaveLength(2000)
    expect(plainLine('\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07')).toBe('red link')
  })

  it('shows what a terminal would: the last state of a line that was overwritten', () => {
    expect(safeLines('10 %\r50 %\r100 %\r\ndone', (text) => text)).toEqual(['100 %', 'done'])
  })
})
