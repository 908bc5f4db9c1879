import { describe, expect, it } from 'vitest'
import { ActionFailure } from '../../src/action/report/error-codes.ts'
import { watch, type WatchOptions } from '../../src/action/watch.ts'
import { httpFailure, requestFailure } from '../support/request-failure.ts'
import { caught } from './support/caught.ts'
import { fakeEffects } from './support/effects.ts'

type Answer = string | Error
type Times = { asks?: number[] }

/** Watches a thing that answers with these, one each time it is asked; the last one for ever. `asks`: how long each takes. */
function scene(answers: readonly Answer[], { asks = [], ...changes }: Partial<WatchOptions<string>> & Times = {}) {
  const effects = fakeEffects()
  const start = effects.now()
  const [lines, seen, waits]: [string[], [string, number][], number[]] = [[], [], []]
  let asked = 0
  const watched = watch<string>({
    what: 'thing',
    who: 'service',
    ask: async () => {
      effects.advance(asks[asked] ?? 0)
      const answer = answers[Math.min(asked++, answers.length - 1)]!
      if (answer instanceof Error) throw answer
      return answer
    },
    onSeen: (status, elapsedMs) => seen.push([status, elapsedMs]),
    statusOf: (status) => `<${status}>`,
    isFinal: (status) => status === 'done',
    still: (status, elapsedMs) => `still ${status} after ${elapsedMs}`,
    expected: undefined,
    timeoutMs: 600_000,
    signal: new AbortController().signal,
    effects,
    info: (line) => lines.push(line),
    onRateLimit: (waitedMs) => waits.push(waitedMs),
    ...changes,
  })
  return { watched, effects, lines, seen, waits, asked: () => asked, elapsed: () => effects.now() - start }
}

const timeout = (timeoutMs: number) => `Asking again until ${timeoutMs / 60_000} min are over.`
const noAnswer = 'GET /v2/deployments got no answer'
const lostLine = `The status could not be read: ${noAnswer}. ${timeout(600_000)}`

describe('watch', () => {
  it('hands each answer over, with the time since the beginning', async () => {
    const { watched, seen, lines } = scene(['new', 'new', 'done'], { asks: [300, 200, 100] })
    expect(await watched).toEqual({ end: 'final', seen: 'done' })
    expect(seen).toEqual([
      ['new', 300],
      ['new', 1500],
      ['done', 2600],
    ])
    expect(lines).toEqual([])
  })

  it('says once that answers are missing, and since when, as soon as they are back', async () => {
    const { watched, lines, waits } = scene(['new', requestFailure(), httpFailure(503), 'new', requestFailure(), 'done'])
    await watched
    expect(lines).toEqual([lostLine, 'The service answers again, after 2 s.', lostLine, 'The service answers again, after 1 s.'])
    expect(waits).toEqual([])
  })

  it('does not end a sentence of somebody else twice', async () => {
    const { watched, lines } = scene([requestFailure({ detail: 'Try later.' }), 'done'])
    await watched
    expect(lines[0]).toBe(`The status could not be read: ${noAnswer}: Try later. ${timeout(600_000)}`)
  })

  it('breaks each minute of silence, and no shorter one', async () => {
    const quiet = scene(['new', 'new', 'done'], { asks: [0, 59_000 - 1] })
    await quiet.watched
    expect(quiet.lines).toEqual([])
    const minute = scene(['new', 'new', 'done'], { asks: [0, 59_000] })
    await minute.watched
    expect(minute.lines).toEqual(['still new after 60000'])
  })

  it('counts the minute from the last line, whatever that said', async () => {
    const { watched, lines } = scene(['new'], {
      timeoutMs: 100_000,
      onSeen: (_, elapsedMs, say) => elapsedMs >= 30_000 && elapsedMs < 34_000 && say(`news at ${elapsedMs}`),
    })
    expect(await watched).toEqual({ end: 'timeout', seen: 'new' })
    const [first, ...rest] = lines
    const [at, beat] = [first, rest.at(-1)].map((line) => Number(line?.split(' ').at(-1)))
    expect(first).toMatch(/^news at /)
    expect(beat! - at!).toBeGreaterThanOrEqual(60_000)
  })

  it('breaks the silence of a long Retry-After, and says how long there has been no answer', async () => {
    const { watched, effects, lines, waits } = scene(['new', httpFailure(429, { retryAfterMs: 130_000 }), 'done'])
    await watched
    expect(effects.slept).toEqual([1000, 60_000, 60_000, 10_000])
    expect(lines).toEqual([
      `The status could not be read: GET /v2/deployments answered 429. ${timeout(600_000)}`,
      'No answer for 1 min; 1 min 1 s in all.',
      'No answer for 2 min; 2 min 1 s in all.',
      'The service answers again, after 2 min 10 s.',
    ])
    expect(waits).toEqual([130_000])
  })

  it('says nothing of a minute at whose end it asks again', async () => {
    const { watched, lines } = scene([httpFailure(429, { retryAfterMs: 60_000 }), 'done'])
    await watched
    expect(lines.slice(1)).toEqual(['The service answers again, after 1 min.'])
  })

  it('counts only the waits that a 429 asked for, and never waits less than it would anyway', async () => {
    const { watched, effects, waits } = scene([
      httpFailure(503, { retryAfterMs: 5000 }),
      httpFailure(429, { retryAfterMs: 10 }),
      httpFailure(429),
      'new',
      'done',
    ])
    await watched
    expect(effects.slept).toEqual([5000, 1000, 1000, 1000])
    expect(waits).toEqual([1000, 1000])
  })

  it('is quick around the time at which it usually ends', async () => {
    const { watched, effects } = scene(['new', 'new', 'done'], { asks: [100_000], expected: 100_000 })
    await watched
    expect(effects.slept).toEqual([2000, 2000])
  })
})

describe('a refusal', () => {
  const statuses = [400, 401, 403, 404, 409, 422, 499]

  it.each(statuses)('with %d counts when it comes twice', async (status) => {
    const { watched, asked } = scene(['new', httpFailure(status)])
    expect((await caught(watched))['message']).toBe(
      `Reading the status of the thing failed: GET /v2/deployments answered ${status}.`,
    )
    expect(asked()).toBe(3)
  })

  it.each([
    ['too slow', httpFailure(408)],
    ['too many', httpFailure(429)],
    ['a fault of the service', httpFailure(500)],
    ['a redirect', httpFailure(399)],
    ['a page of something else', requestFailure({ kind: 'protocol', status: 404 })],
  ])('is not %s', async (_, error) => {
    const { watched } = scene([error, error, error, 'done'])
    expect(await watched).toEqual({ end: 'final', seen: 'done' })
  })

  it('has to come twice in a row', async () => {
    const { watched } = scene([httpFailure(404), requestFailure(), httpFailure(404), 'new', httpFailure(404), 'done'])
    expect(await watched).toEqual({ end: 'final', seen: 'done' })
  })

  it('is put into the words of the one who watches', async () => {
    const refused = () => new ActionFailure({ code: 'E_NOT_FOUND', happened: 'It was deleted.' })
    expect(await caught(scene([httpFailure(404)], { refused }).watched)).toEqual({
      code: 'E_NOT_FOUND',
      message: 'It was deleted.',
    })
  })
})

describe('the end of the time', () => {
  it('is a timeout to the millisecond, with what was seen last', async () => {
    const { watched, elapsed, effects } = scene(['new'], { timeoutMs: 2500 })
    expect(await watched).toEqual({ end: 'timeout', seen: 'new' })
    expect([elapsed(), effects.slept]).toEqual([2500, [1000, 1000, 500]])
  })

  it('is a lost connection when no answer came for the last tenth of it', async () => {
    const times = Array.from({ length: 9 }, () => 'new')
    const { watched } = scene([...times, requestFailure({ code: 'ECONNREFUSED' })], { timeoutMs: 10_000 })
    expect(await caught(watched)).toEqual({
      code: 'E_UNAVAILABLE',
      message:
        'The connection to the service was lost: for the last 1 s of the 10 s no usable answer came. ' +
        `The last status that was seen is <new>.\nReading the status of the thing failed: ${noAnswer}.`,
      tried: 'The status was asked for again and again until the timeout.',
      next: 'Nothing listens there: check control-plane-url, and that the control plane runs.',
    })
    const hiccup = scene([...times, 'new', requestFailure()], { timeoutMs: 10_001 })
    expect(await hiccup.watched).toEqual({ end: 'timeout', seen: 'new' })
  })

  it('is a lost connection when there never was an answer, however short the silence', async () => {
    const { watched } = scene([requestFailure()], { timeoutMs: 10_000, asks: [9999] })
    expect((await caught(watched))['message']).toContain('The last status that was seen is none.')
  })

  it('comes in a request as well as in a sleep', async () => {
    for (const asleep of [true, false]) {
      const controller = new AbortController()
      const over = () => controller.abort(new DOMException('the time is over', 'TimeoutError'))
      const effects = fakeEffects(() => asleep && over())
      const ask = async () => {
        if (asleep) return 'new'
        over()
        throw requestFailure({ kind: 'deadline' })
      }
      const { watched, lines } = scene([], { ask, effects, signal: controller.signal })
      expect(await watched).toEqual({ end: 'timeout', seen: asleep ? 'new' : undefined })
      expect(lines).toEqual([])
    }
  })
})

describe('a cancellation', () => {
  it.each([true, false])('is told as one; in a sleep: %s', async (asleep) => {
    const controller = new AbortController()
    const reason = new DOMException('received SIGINT', 'AbortError')
    const effects = fakeEffects(() => asleep && controller.abort(reason))
    const error = requestFailure({ kind: 'cancelled' })
    const ask = async () => {
      if (asleep) return 'new'
      controller.abort(reason)
      throw error
    }
    const { watched, lines } = scene([], { ask, effects, signal: controller.signal })
    await expect(watched).rejects.toMatchObject({
      code: 'E_CANCELLED',
      message: 'The step was cancelled while it waited for the thing.',
      cause: asleep ? reason : error,
    })
    expect(lines).toEqual([])
  })
})
