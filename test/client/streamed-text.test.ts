import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assembleText, streamedText } from '../../src/client/streamed-text.ts'
import type { RunEvent } from '../../src/contract/run-stream.ts'

const ai = (content: unknown, id?: string) => ({ type: 'ai', content, ...(id === undefined ? {} : { id }) })
const human = (content: string) => ({ type: 'human', content, id: 'question' })
const event = (name: string, data: unknown): RunEvent => ({ event: name, data })

/** The stream of one run of the echo agent in each mode, as a real agent server sent it (cut to what matters). */
const RECORDED: Record<string, RunEvent[]> = {
  updates: [event('updates', { echo: { messages: [ai('echo 1: hi', 'run-1')] } })],
  values: [event('values', { messages: [human('hi')] }), event('values', { messages: [human('hi'), ai('echo 1: hi', 'run-1')] })],
  messages: [
    event('messages/complete', [human('hi')]),
    event('messages/metadata', { 'run-1': { metadata: { langgraph_node: 'echo' } } }),
    event('messages/partial', [ai('echo', 'run-1')]),
    event('messages/partial', [ai('echo 1: h', 'run-1')]),
    event('messages/partial', [ai('echo 1: hi', 'run-1')]),
    event('messages/complete', [ai('echo 1: hi', 'run-1')]),
  ],
  'messages-tuple': ['echo', ' 1', ': h', 'i'].map((piece) => event('messages', [ai(piece, 'run-1'), { langgraph_step: 1 }])),
  tasks: [
    event('tasks', { id: 't', name: 'echo', input: { messages: [human('hi')] }, triggers: ['branch:to:echo'] }),
    event('tasks', { id: 't', name: 'echo', result: { messages: [ai('echo 1: hi', 'run-1')] }, interrupts: [] }),
  ],
  debug: [
    event('debug', { step: 1, type: 'task', payload: { name: 'echo', input: { messages: [human('hi')] } } }),
    event('debug', { step: 1, type: 'task_result', payload: { result: { messages: [ai('echo 1: hi', 'run-1')] } } }),
  ],
  events: [
    event('events', { event: 'on_chain_start', data: { input: { messages: [{ role: 'user', content: 'hi' }] } }, run_id: 'a' }),
    ...['echo 1', ': hi'].map((piece) => event('events', { event: 'on_chat_model_stream', data: { chunk: ai(piece, 'run-1') } })),
  ],
  checkpoints: [event('checkpoints', { values: { messages: [human('hi'), ai('echo 1: hi', 'run-1')] }, next: [] })],
}

describe('the streamed text', () => {
  it.each(Object.entries(RECORDED))('of a stream in the mode %s is what the agent said, without the question', (_, events) => {
    const metadata = event('metadata', { run_id: 'run', attempt: 1 })
    expect(streamedText([metadata, ...events])).toBe('echo 1: hi')
  })

  it.each(Object.entries(RECORDED))('of the mode %s is the same for a subgraph', (_, events) => {
    const named = events.map(({ event: name, data }) => event(`${name}|agent:112ad8d7|tool:1`, data))
    expect(streamedText(named)).toBe('echo 1: hi')
  })

  it('is not doubled when several modes are streamed at once', () => {
    const { updates = [], values = [], 'messages-tuple': tuple = [] } = RECORDED
    expect(streamedText([...values.slice(0, 1), ...tuple, ...updates, ...values.slice(1)])).toBe('echo 1: hi')
  })

  it('keeps what different messages and nodes say apart', () => {
    expect(
      streamedText([
        event('updates', { plan: { messages: [ai('first', 'a')] }, act: [{ messages: ai('second', 'b') }] }),
        event('updates', { act: { messages: [ai('third')] }, skipped: null }),
        event('updates', { act: { messages: [ai('third')] } }),
      ]),
    ).toBe('first\nsecond\nthird\nthird')
  })

  it('lets a state forget what is no longer in it, and no other graph’s', () => {
    expect(
      streamedText([
        event('values', { messages: [ai('draft', 'a'), ai('kept', 'b')] }),
        event('values|sub:1', { messages: [ai('inner', 'c')] }),
        event('values', { messages: [ai('kept', 'b'), ai('without id')] }),
        event('values', { messages: [ai('kept', 'b'), ai('without id, longer')] }),
      ]),
    ).toBe('kept\ninner\nwithout id, longer')
  })

  it.each([
    [
      'a state without messages',
      event('updates', { answer: { city: 'Paris', parts: [{ note: 'on the Seine' }], n: 3 } }),
      'Paris\non the Seine',
    ],
    [
      'content blocks',
      event('values', {
        messages: [ai([{ type: 'text', text: 'a' }, 'b', { type: 'tool_use', text: 'x' }, { text: 'c', index: 0 }])],
      }),
      'abc',
    ],
    [
      'no reasoning',
      event('messages', [
        ai(
          [
            { type: 'thinking', thinking: 'hm' },
            { type: 'reasoning', text: 'hm' },
            { type: 'output_text', text: 'so' },
          ],
          'a',
        ),
      ]),
      'so',
    ],
    [
      'roles',
      event('updates', {
        node: {
          messages: [
            { role: 'user', content: 'q' },
            { role: 'assistant', content: 'a' },
            { role: 'system', content: 's' },
          ],
        },
      }),
      'a',
    ],
    [
      'serialised messages',
      event('values', {
        messages: [
          { lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'HumanMessage'], kwargs: { content: 'q' } },
          { lc: 1, type: 'constructor', id: ['langchain_core', 'messages', 'AIMessage'], kwargs: { content: 'a', id: 'x' } },
          { type: 'ai', data: { content: 'b' } },
          { type: 'HumanMessageChunk', content: 'q' },
        ],
      }),
      'a\nb',
    ],
    [
      'a tool call alone',
      event('updates', { agent: { messages: [{ ...ai(''), tool_calls: [{ name: 'search', args: { q: 'x' } }] }] } }),
      '',
    ],
    [
      'what a tool answers',
      event('updates', { tools: { messages: [{ type: 'tool', content: '42', tool_call_id: 'c' }] } }),
      '42',
    ],
    ['pieces of the writer', event('custom', { delta: 'a' }), 'a'],
    ['custom objects', event('custom', { status: 'searching', pages: [1, 2] }), 'searching'],
    ['custom content', event('custom', { content: [{ type: 'text', text: 'x' }] }), 'x'],
    ['an unknown event', event('sources', { found: [ai('by a newer server', 'n')], note: 'left out' }), 'by a newer server'],
  ])('reads %s', (_, recorded, text) => {
    expect(streamedText([recorded])).toBe(text)
  })

  it.each<[string, RunEvent[], string]>([
    ['two messages of a state', [event('values', { messages: [ai('a'), ai('b')] })], 'a\nb'],
    [
      'the states of two graphs',
      [event('values', { messages: [ai('a')] }), event('values|sub:1', { messages: [ai('b')] })],
      'a\nb',
    ],
    [
      'pieces of two graphs',
      [event('messages', [ai('a')]), event('messages|sub:1', [ai('b')]), event('messages', [ai('c')])],
      'ac\nb',
    ],
    ['two messages so far', [event('messages/partial', [ai('a'), ai('b')])], 'a\nb'],
    ['messages so far of two graphs', [event('messages/partial', [ai('a')]), event('messages/partial|sub:1', [ai('b')])], 'a\nb'],
  ])('tells messages without an id apart: %s', (_, events, text) => {
    expect(streamedText(events)).toBe(text)
  })

  it('takes a complete message for the same as its parts, also without an id', () => {
    expect(streamedText([event('messages/partial', [ai('ec')]), event('messages/complete', [ai('echo')])])).toBe('echo')
  })

  it('takes of checkpoints the last state, and nothing but it', () => {
    const checkpoint = (...messages: unknown[]) =>
      event('checkpoints', { values: { messages }, tasks: [{ result: ai('of a task') }] })
    expect(streamedText([checkpoint(ai('draft', 'a')), checkpoint(ai('final', 'b'))])).toBe('final')
    expect(streamedText([event('checkpoints', { values: { answer: 'Paris' }, next: ['judge'] })])).toBe('Paris')
  })

  it.each([
    ['tasks', { input: { messages: [ai('said before')] }, result: { messages: [ai('new')] } }],
    ['debug', { payload: { input: { messages: [ai('said before')] }, result: { messages: [ai('new')] } } }],
  ])('takes of %s what came out, not what went in', (name, data) => {
    expect(streamedText([event(name, data)])).toBe('new')
  })

  it('has no empty line for a message without text', () => {
    expect(streamedText([event('updates', { agent: { messages: [ai('', 'call'), ai('sunny', 'answer')] } })])).toBe('sunny')
  })

  it.each(['text', 'delta', 'content'])('joins pieces under the name %s as they are', (name) => {
    expect(streamedText([event('custom', { [name]: 'sun' }), event('custom', { [name]: 'ny' })])).toBe('sunny')
  })

  it('is looked for six levels deep, and no deeper', () => {
    const nested = (value: unknown, levels: number): unknown => (levels === 0 ? value : { inner: nested(value, levels - 1) })
    expect(streamedText([event('values', nested(ai('found'), 6))])).toBe('found')
    expect(streamedText([event('sources', nested(ai('too deep'), 7))])).toBe('')
    expect(streamedText([event('values', nested('found', 6))])).toBe('found')
    expect(streamedText([event('values', nested('too deep', 7))])).toBe('')
  })

  it('is cut to its bound', () => {
    const assembly = assembleText({ max: 10 })
    for (let index = 0; index < 100; index++) assembly.add(event('messages', [ai('abc', 'a'), {}]))
    expect(assembly.text()).toBe('abcabcabca')
    assembly.add(event('updates', { node: { messages: [ai('x'.repeat(1000), 'b')] } }))
    expect(assembly.text()).toHaveLength(10)
  })
})

/** A text and the places at which it is cut. */
const cutText = fc
  .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }), fc.array(fc.nat(200), { maxLength: 20 }))
  .map(([text, cuts]) => {
    const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length]
    return { text, pieces: places.slice(1).map((place, index) => text.slice(places[index], place)) }
  })
const id = fc.option(fc.uuid(), { nil: undefined })
const asBlocks = (piece: string) => [{ type: 'text', text: piece, index: 0 }]

describe('a text', () => {
  it('comes back from any sequence of deltas', () => {
    fc.assert(
      fc.property(cutText, id, fc.boolean(), ({ text, pieces }, messageId, blocks) => {
        const stream = pieces.map((piece) => event('messages', [ai(blocks ? asBlocks(piece) : piece, messageId), {}]))
        expect(streamedText(stream)).toBe(text)
      }),
    )
  })

  it('comes back from any sequence of custom pieces', () => {
    fc.assert(
      fc.property(cutText, ({ text, pieces }) => {
        expect(streamedText(pieces.map((piece, index) => event('custom', index % 2 === 0 ? piece : { text: piece })))).toBe(text)
      }),
    )
  })

  it('comes back from any sequence of partial texts, and of states', () => {
    fc.assert(
      fc.property(cutText, id, fc.boolean(), ({ text, pieces }, messageId, blocks) => {
        const soFar = pieces.map((_, index) => pieces.slice(0, index + 1).join(''))
        const message = (content: string) => ai(blocks ? asBlocks(content) : content, messageId)
        expect(streamedText(soFar.map((content) => event('messages/partial', [message(content)])))).toBe(text)
        expect(streamedText(soFar.map((content) => event('values', { messages: [human('q'), message(content)] })))).toBe(text)
      }),
    )
  })

  it('is made of any JSON under any name without an exception, and within its bound', () => {
    const names = fc.constantFrom(
      ...Object.keys(RECORDED),
      'messages/partial',
      'messages/complete',
      'custom',
      'error',
      '__proto__',
      '|',
    )
    const anything = fc.record({ event: fc.oneof(names, fc.string()), data: fc.jsonValue({ maxDepth: 12 }) })
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 20 }), (events) => {
        const assembly = assembleText({ max: 50 })
        for (const one of events) assembly.add(one)
        expect(assembly.text().length).toBeLessThanOrEqual(50)
      }),
      { numRuns: 500 },
    )
  })

  it('does not overflow on deep nesting', () => {
    const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as unknown
    expect(
      Object.keys(RECORDED)
        .map((mode) => streamedText([event(mode, { a: deep }), event(mode, deep)]))
        .join(''),
    ).toBe('')
  })
})
