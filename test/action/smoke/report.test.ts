import { describe, expect, it } from 'vitest'
import { agentAddress } from '../../../src/action/smoke/address.ts'
import { firstGraph } from '../../../src/action/smoke/assistant.ts'
import { beginning, eventList, quoted, smokeFailure, type SmokeReport, times } from '../../../src/action/smoke/report.ts'
import { ActionFailure, ERROR_CODES } from '../../../src/action/report/error-codes.ts'

const same = (text: string) => text
const REPORT: SmokeReport = {
  result: 'failed',
  address: 'https://agent.example.com/',
  assistant: 'agent',
  streamMode: 'updates',
  attempts: 1,
  events: 'metadata 1',
  firstEventMs: undefined,
  endMs: undefined,
  said: [],
}

describe('the beginning of what an agent says', () => {
  it.each<[string, string, string[]]>([
    ['nothing', '', []],
    ['white space', ' \n\t ', []],
    ['lines', 'one\ntwo', ['one', 'two']],
    ['twenty lines', Array.from({ length: 20 }, () => 'x').join('\n'), Array.from({ length: 20 }, () => 'x')],
    ['more', Array.from({ length: 21 }, () => 'x').join('\n'), [...Array.from({ length: 20 }, () => 'x'), '…']],
    ['4000 characters', `${'x'.repeat(1999)}\n${'y'.repeat(2000)}`, ['x'.repeat(1999), 'y'.repeat(2000)]],
    ['more of them', `${'x'.repeat(1999)}\n${'y'.repeat(2001)}`, ['x'.repeat(1999), `${'y'.repeat(1999)}…`, '…']],
  ])('is %s', (_, text, lines) => {
    expect(beginning(text, same)).toEqual(lines)
  })

  it('is redacted before it is cut', () => {
    expect(beginning(`${'x'.repeat(3999)}secret`, (text) => text.replaceAll('secret', ''))).toEqual([`${'x'.repeat(1999)}…`])
  })
})

describe('words in a sentence', () => {
  it('stand on one line, and are cut', () => {
    expect(quoted('  a \n\t b  ')).toBe('a b')
    expect(quoted('x'.repeat(300))).toBe('x'.repeat(300))
    expect(quoted('x'.repeat(301))).toBe(`${'x'.repeat(299)}…`)
    expect(quoted('abcdef', 4)).toBe('abc…')
  })

  it('count', () => {
    expect([times(0), times(1), times(2)]).toEqual(['0 times', 'once', '2 times'])
    expect(eventList(new Map())).toBe('none')
    expect(
      eventList(
        new Map([
          ['a\nb', 1],
          ['x'.repeat(81), 2],
        ]),
      ),
    ).toBe(`a b 1, ${'x'.repeat(79)}… 2`)
  })
})

describe('the failure of a smoke test', () => {
  it('tells what was sent, what came and what was said', () => {
    const cause = new Error('x')
    const failure = smokeFailure({
      happened: 'It was wrong.',
      report: { ...REPORT, attempts: 3, said: ['one', 'two'] },
      next: 'Mend it.',
      cause,
    })
    expect(failure).toMatchObject({
      code: 'E_SMOKE_TEST',
      message: 'It was wrong.\nThe agent said: one two',
      tried:
        "smoke-test-input was sent to the assistant 'agent' (stream mode updates) at https://agent.example.com/, 3 times. " +
        'Events that came: metadata 1.',
      next: 'Mend it.',
      cause,
    })
  })

  it('leaves out what is not known', () => {
    const failure = smokeFailure({ happened: 'It was wrong.', report: { ...REPORT, assistant: undefined } })
    expect(failure).toMatchObject({
      message: 'It was wrong.',
      tried:
        'smoke-test-input was sent to no assistant yet (stream mode updates) at https://agent.example.com/, once. ' +
        'Events that came: metadata 1.',
      next: ERROR_CODES.E_SMOKE_TEST.remedy,
    })
  })
})

function refusal(address: string | undefined): ActionFailure {
  try {
    agentAddress(address)
  } catch (error) {
    if (error instanceof ActionFailure) return error
  }
  throw new Error('the address was taken')
}

describe('the address of the agent', () => {
  it.each([undefined, ''])('is missing: %j', (address) => {
    expect(refusal(address)).toMatchObject({
      code: 'E_SMOKE_TEST',
      message: 'The control plane tells no address of the deployment: url and source_config.custom_url are both empty.',
      tried: 'Nothing was sent to the agent.',
      next: 'Find out on the control plane where the deployment is served, or take smoke-test-input out.',
    })
  })

  it.each([
    ['no address', 'no address', 'is not an address'],
    ['ftp://a.example.com', 'ftp://a.example.com', 'is neither https nor http'],
    ['https://user@a.example.com', 'https://***@a.example.com', 'carries credentials'],
    ['https://:word@a.example.com', 'https://***@a.example.com', 'carries credentials'],
    ['https://a.example.com/?a=b', 'https://a.example.com/?***', 'has a query or a fragment'],
    ['https://a.example.com/#b', 'https://a.example.com/?***', 'has a query or a fragment'],
    [`x${'y'.repeat(300)}`, `x${'y'.repeat(198)}…`, 'is not an address'],
  ])('cannot be %s', (address, shown, problem) => {
    expect(refusal(address)).toMatchObject({
      code: 'E_SMOKE_TEST',
      message: `The control plane tells '${shown}' as the address of the deployment, and it ${problem}.`,
      tried: 'Nothing was sent to the agent, the API key least of all.',
      next: 'Correct the address of the deployment on the control plane.',
    })
  })
})

describe('the first graph of a configuration', () => {
  it.each([
    ['{"graphs":{"":"x","b":"y"}}', 'b'],
    ['{"graphs":{"b":"y","a":"x"}}', 'b'],
    ['{"graphs":["a"]}', undefined],
    ['{"graphs":null}', undefined],
    ['{"graphs":"agent"}', undefined],
    ['{}', undefined],
    ['no JSON', undefined],
  ])('%s: %s', (text, graph) => {
    expect(firstGraph(text)).toBe(graph)
  })
})
