import { describe, expect, it } from 'vitest'
import { contentText, readMessage } from '../../src/contract/message.ts'

describe('who says a message', () => {
  it.each([
    ['human', true],
    ['user', true],
    ['system', true],
    ['developer', true],
    ['HumanMessage', true],
    ['HumanMessageChunk', true],
    ['ai', false],
    ['AIMessageChunk', false],
    ['tool', false],
    ['MessageUser', false],
    ['userMessageChunkOfMine', false],
  ])('%s: to the agent %s', (type, isInput) => {
    expect(readMessage({ type, content: 'a' })).toEqual({ id: null, text: 'a', isInput })
    expect(readMessage({ role: type, content: 'a' })).toEqual({ id: null, text: 'a', isInput })
  })
})

describe('the id of a message', () => {
  it.each([
    ['m-1', 'm-1'],
    ['', null],
    [7, null],
    [undefined, null],
  ])('%j is %j', (id, expected) => {
    expect(readMessage({ type: 'ai', content: '', id })?.id).toBe(expected)
  })
})

describe('the text of a content', () => {
  it.each<[unknown, string]>([
    ['plain', 'plain'],
    [['a', { type: 'text', text: 'b' }, 'c'], 'abc'],
    [[{ text: 'no type' }, { type: null, text: ', null' }], 'no type, null'],
    [
      [
        { type: 'output_text', text: 'a' },
        { type: 'text_delta', text: 'b' },
        { type: 'input_text', text: 'c' },
      ],
      'abc',
    ],
    [[{ type: 'context', text: 'x' }], ''],
    [
      [
        { type: 'text_of_thought', text: 'x' },
        { type: 'a text', text: 'x' },
      ],
      '',
    ],
    [
      [
        { type: 'reasoning', text: 'x' },
        { type: 'image_url', text: 'x' },
      ],
      '',
    ],
    [[{ type: ['text'], text: 'x' }, { type: 'text', text: 7 }, { type: 'text' }], ''],
    [[null, 7, ['x'], true], ''],
    [7, ''],
    [null, ''],
    [{ type: 'text', text: 'x' }, ''],
  ])('%j is %j', (content, text) => {
    expect(contentText(content)).toBe(text)
  })
})

describe('the wrapping of a message', () => {
  const id = ['langchain', 'schema', 'messages', 'AIMessage']

  it('is taken off', () => {
    const kwargs = { content: 'a', id: 'm', type: 'other' }
    expect(readMessage({ lc: 1, type: 'constructor', id, kwargs })).toEqual({ id: 'm', text: 'a', isInput: false })
    expect(readMessage({ type: 'constructor', id: ['a', 'b', 'HumanMessage'], kwargs })?.isInput).toBe(true)
    expect(readMessage({ type: 'human', data: { content: 'a', id: 'm', type: 'ai' } })).toEqual({
      id: 'm',
      text: 'a',
      isInput: true,
    })
  })

  it.each<[unknown, unknown]>([
    // A message of its own, which carries fields of the same names.
    [
      { type: 'ai', content: 'own', kwargs: { content: 'x' }, id },
      { id: null, text: 'own', isInput: false },
    ],
    [
      { type: 'ai', content: 'own', data: { content: 'x' } },
      { id: null, text: 'own', isInput: false },
    ],
    [
      { type: 'ai', content: 'own', id: 'm', kwargs: {} },
      { id: 'm', text: 'own', isInput: false },
    ],
    // Half a wrapping is none.
    [{ type: 'constructor', kwargs: { content: 'x' }, id: 'AIMessage' }, null],
    [{ type: 'constructor', kwargs: 'x', id }, null],
    [
      { type: 'constructor', content: 'own', id },
      { id: null, text: 'own', isInput: false },
    ],
    [{ type: 'module', kwargs: { content: 'x' }, id }, null],
    [{ data: { role: 'user', content: 'x' } }, null],
    [{ type: 'human', data: 'x' }, null],
    [{ type: 'human', data: ['x'] }, null],
  ])('%j is read as %j', (value, message) => {
    expect(readMessage(value)).toEqual(message)
  })
})
