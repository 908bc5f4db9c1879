import { describe, expect, it } from 'vitest'
import { createRedactor } from '../../../src/action/masks.ts'
import { annotation } from '../../../src/action/report/annotations.ts'
import { gantt } from '../../../src/action/report/gantt.ts'
import { inputsNamedIn } from '../../../src/action/report/input-names.ts'
import { createLog } from '../../../src/action/report/log.ts'
import { block, clipBytes, code, html, inline, link, prose, shortCommit, table } from '../../../src/action/report/markdown.ts'
import { clip, plainLine, plainLines, safeLines } from '../../../src/action/report/plain.ts'

const same = (text: string) => text

describe('a text that is cut', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['abc', 1, '…'],
    ['abc', 0, '…'],
    ['', 0, ''],
    ['a💡b', 3, 'a…'],
    ['a💡bc', 4, 'a💡…'],
  ])('%j at %d is %j', (text, max, expected) => {
    expect(clip(text, max)).toBe(expected)
  })

  it('keeps whole characters of a given number of bytes', () => {
    const note = '\n\nThe rest was left out: the summary was too long.\n'
    expect(clipBytes('x'.repeat(100), 100)).toBe('x'.repeat(100))
    expect(clipBytes('x'.repeat(101), 100)).toBe('x'.repeat(100 - note.length) + note)
    for (const room of [10, 11]) expect(clipBytes('ä'.repeat(60), note.length + room)).toBe(`äääää${note}`)
    expect(clipBytes('💡'.repeat(60), note.length + 7)).toBe(`💡${note}`)
    expect(clipBytes('x'.repeat(60), 10)).toBe(note)
  })
})

describe('a line of somebody else', () => {
  it.each([
    ['\x1b[1;31mred\x1b[0m', 'red'],
    ['\x1b[?25lx', 'x'],
    ['\x1b[ qx', 'x'],
    ['\x1b]0;title\x07x', 'x'],
    ['\x1b]0;title\x1b\\x', 'x'],
    ['\x1b]0;never ended', ''],
    ['\x1bMx', 'x'],
    ['a\x1bz', 'a z'],
    ['a\tb', 'a\tb'],
    ['a\x00b\x08c\x0bd\x1fe\x7ff\x9fg', 'a b c d e f g'],
    ['a\u061cb\u200bc\u200fd\u2028e\u202ef\u2060g\u2066h\u2069i\ufeffj', 'a b c d e f g h i j'],
    ['a\u2010b\u202fc', 'a\u2010b\u202fc'],
    ['  a  ', '  a'],
  ])('%j is shown as %j', (text, expected) => {
    expect(plainLine(text)).toBe(expected)
  })

  it('is cut at 2000 characters, and several are not put together', () => {
    expect(plainLine('x'.repeat(2000))).toBe('x'.repeat(2000))
    expect(plainLine('x'.repeat(2001))).toBe(`${'x'.repeat(1999)}…`)
    expect(plainLines(`a\r\nb\n\n${'x'.repeat(2001)}`)).toEqual(['a', 'b', '', `${'x'.repeat(1999)}…`])
    expect(safeLines(`a\n${'x'.repeat(2001)}`, same)).toEqual(['a', 'x'.repeat(2001)])
  })

  it.each([
    ['10 %\r50 %\r100 %', ['100 %']],
    ['10 %\r  ', ['10 %']],
    ['\r', ['']],
    ['a\rb\nc\rd', ['b', 'd']],
  ])('%j is what a terminal shows', (text, lines) => {
    expect(safeLines(text, same)).toEqual(lines)
  })
})

describe('text in Markdown', () => {
  it.each([
    ['a & b', 'a &#38; b'],
    ['+ a', '&#43; a'],
    ['= a', '&#61; a'],
    ['a - b + c = d', 'a - b + c = d'],
    ['12) a', '12&#41; a'],
    ['1234567890. a', '1234567890. a'],
    ['a 1. b', 'a 1. b'],
    ['WWW.a', 'WWW&#46;a'],
    ['a: b', 'a: b'],
    ['a:', 'a:'],
    ['a__b', 'a&#95;&#95;b'],
    ['  - a', '&#45; a'],
    ['💡', '&#128161;'],
    ['größe_2', 'größe_2'],
    ["it's (50%), a/b; x?", "it's (50%), a/b; x?"],
  ])('%j is %j', (text, expected) => {
    expect(inline(text)).toBe(expected)
  })

  it('is code, a block, a table, a link or a commit', () => {
    expect(code('a|b')).toBe('<code>a&#124;b</code>')
    expect(html(`<a href="x">'&`)).toBe('&lt;a href=&quot;x&quot;&gt;&#39;&amp;')
    expect(block(['<a>', '', 'b'])).toBe('<pre>&lt;a&gt;\n \nb</pre>')
    expect(block([])).toBe('<pre></pre>')
    expect(
      table([
        ['a', 'b'],
        ['c', 'd'],
      ]),
    ).toBe('| | |\n|---|---|\n| a | b |\n| c | d |')
    expect(link('x', 'http://a.example.com')).toBe('<a href="http://a.example.com/">x</a>')
    expect(link('x', 'no address')).toBe('x')
    expect(prose('`a` and `b` and ``')).toBe('<code>a</code> and <code>b</code> and &#96;&#96;')
  })

  it.each([
    ['a'.repeat(40), 'a'.repeat(12)],
    ['ABCDEF0123456789'.repeat(4), 'ABCDEF012345'],
    ['a'.repeat(39), 'a'.repeat(39)],
    ['a'.repeat(65), 'a'.repeat(65)],
    [`x${'a'.repeat(40)}`, `x${'a'.repeat(40)}`],
    [`${'a'.repeat(40)}x`, `${'a'.repeat(40)}x`],
    ['g'.repeat(40), 'g'.repeat(40)],
  ])('the commit %s is %s', (text, expected) => {
    expect(shortCommit(text)).toBe(expected)
  })
})

describe('the lines of the log', () => {
  function written(write: (log: ReturnType<typeof createLog>) => void): string[] {
    const lines: string[] = []
    let tokens = 0
    const token = () => `token-${(tokens += 1)}`
    write(createLog({ write: (line) => lines.push(line), redactor: createRedactor(), token }))
    return lines
  }

  it.each<[string, (log: ReturnType<typeof createLog>) => void, string[]]>([
    ['a plain one', (log) => log.info('a\nb'), ['a b']],
    ['one with colons inside', (log) => log.info('a ::error::b'), ['a ::error::b']],
    ['a command', (log) => log.info('::error::x'), ['::stop-commands::token-1', '::error::x', '::token-1::']],
    ['an indented command', (log) => log.info('  ::x'), ['::stop-commands::token-1', '  ::x', '::token-1::']],
    ['an old command', (log) => log.info('a ##[x]'), ['::stop-commands::token-1', 'a ##[x]', '::token-1::']],
    ['a notice', (log) => log.notice('a\nb'), ['::notice title=Deploy Agent Server::a b']],
    ['a warning', (log) => log.warning('a\nb'), ['::warning title=Deploy Agent Server::a b']],
    ['an error', (log) => log.error({ title: 'a\nb', message: 'c\nd' }), ['::error title=a b::c%0Ad']],
    [
      'a group',
      (log) => log.group('50%\nx', ['a\nb', '::error::c']),
      ['::group::50%25 x', '::stop-commands::token-1', 'a', 'b', '::error::c', '::token-1::', '::endgroup::'],
    ],
    [
      'a group with a long title',
      (log) => log.group('x'.repeat(201), []),
      [`::group::${'x'.repeat(199)}…`, '::stop-commands::token-1', '::token-1::', '::endgroup::'],
    ],
  ])('%s', (_, write, lines) => {
    expect(written(write)).toEqual(lines)
  })

  it('have titles of 250 characters', () => {
    const title = (length: number) => annotation('notice', { title: 'x'.repeat(length), message: '\r' })
    expect(title(250)).toBe(`::notice title=${'x'.repeat(250)}::%0D`)
    expect(title(251)).toBe(`::notice title=${'x'.repeat(249)}…::%0D`)
  })
})

describe('the fields of the service', () => {
  it.each([
    ['body.repo_url: bad', 'In the workflow `repo_url` is `repo-url`.'],
    ['resource_spec.cpu', 'In the workflow `resource_spec` is `source-config`.'],
    ['langgraph_config_path', 'In the workflow `langgraph_config_path` is `config-path`.'],
    ['graph_config_path', 'In the workflow `graph_config_path` is `config-path`.'],
    [
      'image_uri, build_on_push and repo_ref',
      'In the workflow `repo_ref` is `repo-ref` or `tag`, and `image_uri` is `image-uri`, and `build_on_push` is `build-on-push`.',
    ],
    ['my_repo_url and repo_urls', undefined],
    ['name', undefined],
  ])('%j', (text, expected) => {
    expect(inputsNamedIn(text)).toBe(expected)
  })
})

describe('the timeline', () => {
  const bars = (transitions: Parameters<typeof gantt>[0], end: number) =>
    gantt(transitions, end)
      .split('\n')
      .slice(5, -1)
      .filter((line) => !line.includes('tickInterval'))

  it('has a section for each part, and marks its ends', () => {
    const names = ['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'BUILD_FAILED', 'AWAITING_DEPLOY', 'DEPLOYING']
    const ends = [
      'DEPLOY_FAILED',
      'DEPLOYED',
      'CREATE_FAILED',
      'SKIPPED',
      'INTERRUPTED',
      'SKIPPED_X',
      'NOT_INTERRUPTED',
      'x:y',
      '',
    ]
    const transitions = [...names, ...ends].map((status, at) => ({ status, at }))
    expect(bars(transitions, 20)).toEqual([
      '  section Queue',
      '  CREATING :s0, 0, 1',
      '  QUEUED :s1, 1, 2',
      '  AWAITING_BUILD :s2, 2, 3',
      '  section Build',
      '  BUILDING :s3, 3, 4',
      '  BUILD_FAILED :crit, milestone, s4, 4, 5',
      '  section Deploy',
      '  AWAITING_DEPLOY :s5, 5, 6',
      '  DEPLOYING :s6, 6, 7',
      '  DEPLOY_FAILED :crit, milestone, s7, 7, 8',
      '  DEPLOYED :done, milestone, s8, 8, 9',
      '  section Other',
      '  status CREATE_FAILED :crit, milestone, s9, 9, 10',
      '  status SKIPPED :crit, milestone, s10, 10, 11',
      '  status INTERRUPTED :crit, milestone, s11, 11, 12',
      '  status SKIPPED_X :s12, 12, 13',
      '  status NOT_INTERRUPTED :s13, 13, 14',
      '  status x y :s14, 14, 15',
      '  status :s15, 15, 20',
    ])
  })

  it('never ends before it begins, and has whole milliseconds and short names', () => {
    expect(bars([{ status: `#${'x'.repeat(50)}`, at: 10.6 }], 5)).toEqual([
      '  section Other',
      `  status ${'x'.repeat(40)} :s0, 11, 11`,
    ])
    expect(bars([{ status: 'toString', at: 0 }], 1.4)).toEqual(['  section Other', '  status toString :s0, 0, 1'])
  })
})
