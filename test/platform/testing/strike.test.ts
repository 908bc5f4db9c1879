import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { faultSchema } from '../../../src/platform/testing/fault.ts'
import { strike } from '../../../src/platform/testing/strike.ts'

const BODY = JSON.stringify({ text: 'x'.repeat(1000) })
let stop = async () => {}
afterEach(() => stop())

/** A server whose every request meets the fault; `served` counts those that were carried out. */
async function serverWith(
  fields: Record<string, unknown>,
  serve: RequestListener = (_request, response) => void response.end(BODY),
) {
  const fault = faultSchema.parse(fields)
  const state = { served: 0 }
  const counted: RequestListener = (request, response) => {
    state.served += 1
    serve(request, response)
  }
  const server = createServer((request, response) => void strike({ request, response, fault, serve: counted }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, state }
}

/** What a client gets: how much of the body came, and how it ended. */
async function read(url: string, { limitMs = 2000, init = {} }: { limitMs?: number; init?: RequestInit } = {}) {
  let text = ''
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(limitMs) })
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
    return { status: response.status, headers: response.headers, text, end: 'whole' }
  } catch (error) {
    return { status: null, headers: null, text, end: (error as Error).name === 'TimeoutError' ? 'silent' : 'broken' }
  }
}

describe('a fault', () => {
  it('answers in the stead of the platform, with its own status, headers and body', async () => {
    const { url, state } = await serverWith({ status: 429, headers: { 'Retry-After': '7' }, body: { detail: 'slow down' } })
    const answer = await read(url)
    expect(answer).toMatchObject({ status: 429, text: '{"detail":"slow down"}' })
    expect(answer.headers?.get('retry-after')).toBe('7')
    expect(state.served).toBe(0)
  })

  it('leaves the connection in order, whatever was sent', async () => {
    const { url } = await serverWith({ status: 500 })
    const init = { method: 'POST', body: 'x'.repeat(5_000_000) }
    expect((await read(url, { init })).status).toBe(500)
    expect((await read(url, { init })).status).toBe(500)
  })

  it('has the request carried out, and loses the answer', async () => {
    const { url, state } = await serverWith({ status: 502, handled: true }, (_request, response) => {
      response.setHeader('X-Own', 'yes')
      response.writeHead(201)
      response.write('{')
      response.end('}')
    })
    const answer = await read(url)
    expect(answer).toMatchObject({ status: 502, text: '{"detail":"This fault was asked for."}' })
    expect(answer.headers?.get('x-own')).toBe(null)
    expect(state.served).toBe(1)
  })

  it.each([
    [false, 0],
    [true, 1],
  ])('breaks the connection without an answer, the request carried out: %j', async (handled, served) => {
    const { url, state } = await serverWith({ broken: 'reset', handled })
    expect(await read(url)).toMatchObject({ status: null, text: '', end: 'broken' })
    expect(state.served).toBe(served)
  })

  it.each([
    ['one piece', (_request, response) => void response.end(BODY)],
    [
      'one piece of a known length',
      (_request, response) => void response.writeHead(200, { 'Content-Length': BODY.length }).end(BODY),
    ],
    ['several pieces', (_request, response) => void (response.write(BODY), response.end(BODY))],
  ] satisfies [string, RequestListener][])('cuts an answer of %s in its middle', async (_what, serve) => {
    const { url } = await serverWith({ broken: 'truncated' }, serve)
    const answer = await read(url)
    expect(answer.end).toBe('broken')
    expect(answer.text).toBe(BODY.slice(0, Math.floor(BODY.length / 2)))
  })

  it('cuts an answer without a body', async () => {
    const { url } = await serverWith({ broken: 'truncated' }, (_request, response) => void response.writeHead(200).end())
    expect((await read(url)).end).toBe('broken')
  })

  it('stops in the middle of an answer, and stays silent', async () => {
    const { url } = await serverWith({ broken: 'stalled' })
    const answer = await read(url, { limitMs: 300 })
    expect(answer).toMatchObject({ text: BODY.slice(0, Math.floor(BODY.length / 2)), end: 'silent' })
  })

  it('breaks an answer of its own, too', async () => {
    const { url, state } = await serverWith({ broken: 'truncated', status: 500, body: BODY })
    expect((await read(url)).end).toBe('broken')
    expect(state.served).toBe(0)
  })

  it('answers with a page where JSON is expected', async () => {
    const { url } = await serverWith({ broken: 'html' })
    const answer = await read(url)
    expect(answer).toMatchObject({ status: 200, text: expect.stringMatching(/^<!DOCTYPE html>/) as unknown })
    expect(answer.headers?.get('content-type')).toBe('text/html')
  })

  it('makes an answer late, and goes on', async () => {
    const { url, state } = await serverWith({ delay_ms: 150 })
    expect((await read(url, { limitMs: 50 })).end).toBe('silent')
    expect(state.served).toBe(0)
    expect(await read(url)).toMatchObject({ status: 200, text: BODY, end: 'whole' })
  })
})
