import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contentText, readMessage } from '../../src/contract/message.ts'
import {
  assistantsAnswerSchema,
  isAgentEvent,
  isEndEvent,
  isErrorEvent,
  runErrorText,
  runStreamRequestSchema,
  splitEventName,
} from '../../src/contract/run-stream.ts'

describe('the name of an event', () => {
  it.each([
    ['updates', 'updates', ''],
    ['messages/partial|agent:1f0c', 'messages/partial', 'agent:1f0c'],
    ['debug|a:1|b:2', 'debug', 'a:1|b:2'],
    ['|a', '', 'a'],
  ])('%s is %j of the graph %j', (name, base, namespace) => {
    expect(splitEventName(name)).toEqual({ base, namespace })
  })

  it('tells what comes from the agent', () => {
    const own = ['updates', 'values|a:1', 'messages', 'messages/partial', 'custom', 'sources']
    const servers = ['metadata', 'messages/metadata', 'heartbeat', 'feedback', 'end', 'error', 'error|a:1']
    expect(own.filter(isAgentEvent)).toEqual(own)
    expect(servers.filter(isAgentEvent)).toEqual([])
    expect(servers.filter(isErrorEvent)).toEqual(['error', 'error|a:1'])
    expect(servers.filter(isEndEvent)).toEqual(['end'])
  })
})

describe('the words of an error event', () => {
  it.each<[unknown, string]>([
    [{ error: 'ValueError', message: 'no such tool' }, 'ValueError: no such tool'],
    ['Run not found', 'Run not found'],
    [{ message: 'only words' }, 'only words'],
    [{ error: { nested: 1 }, message: 7 }, 'an error without words'],
    [{ error: 'TimeoutError', message: '' }, 'TimeoutError'],
    [null, 'an error without words'],
    [' ', 'an error without words'],
  ])('of %j are %j', (data, text) => {
    expect(runErrorText(data)).toBe(text)
  })
})

describe('the request', () => {
  const body = { assistant_id: 'agent', input: {}, stream_mode: 'updates', on_disconnect: 'cancel' }

  it('takes one mode, or several', () => {
    expect(runStreamRequestSchema.safeParse(body).success).toBe(true)
    expect(runStreamRequestSchema.safeParse({ ...body, stream_mode: ['values', 'custom'] }).success).toBe(true)
  })

  it.each([{ assistant_id: '' }, { input: [] }, { stream_mode: 'tokens' }, { stream_mode: [] }, { on_disconnect: 'stay' }])(
    'refuses %j',
    (change) => {
      expect(runStreamRequestSchema.safeParse({ ...body, ...change }).success).toBe(false)
    },
  )
})

describe('the list of assistants', () => {
  it('needs no more than their ids and graphs', () => {
    expect(assistantsAnswerSchema.parse([{ assistant_id: 'a', graph_id: 'g', name: 7, extra: true }])).toEqual([
      { assistant_id: 'a', graph_id: 'g', name: null, extra: true },
    ])
    expect(assistantsAnswerSchema.parse([{ assistant_id: 'a', graph_id: 'g', name: 'Agent' }])[0]?.name).toBe('Agent')
    expect(assistantsAnswerSchema.parse([{ assistant_id: 'a', graph_id: 'g' }])[0]?.name).toBeNull()
    expect(assistantsAnswerSchema.safeParse([{ assistant_id: 'a' }]).success).toBe(false)
  })
})

describe('a message', () => {
  it('is read from any value without an exception', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const message = readMessage(value)
        expect(message === null || typeof message.text === 'string').toBe(true)
        expect(typeof contentText(value)).toBe('string')
      }),
    )
  })

  it.each<[unknown, unknown]>([
    [
      { type: 'ai', content: 'a', id: 'x' },
      { id: 'x', text: 'a', isInput: false },
    ],
    [
      { role: 'user', content: 'a' },
      { id: null, text: 'a', isInput: true },
    ],
    [
      { type: 'SystemMessage', content: ['a', { type: 'text', text: 'b' }, { type: 'image_url', text: 'c' }] },
      { id: null, text: 'ab', isInput: true },
    ],
    [{ type: 'ai' }, null],
    [{ content: 'a' }, null],
    [['ai', 'a'], null],
  ])('%j is %j', (value, message) => {
    expect(readMessage(value)).toEqual(message)
  })
})
