import { describe, expect, it } from 'vitest'
import { faultSchema } from '../../../src/platform/testing/fault.ts'
import { createFaultList } from '../../../src/platform/testing/fault-list.ts'

const fault = (fields: Record<string, unknown>) => faultSchema.parse({ status: 500, ...fields })
const statusOf = (list: ReturnType<typeof createFaultList>, path: string, method = 'GET') =>
  list.take({ method, path })?.status ?? null

describe('the list of faults', () => {
  it('lets the next N requests meet a fault, once some have passed', () => {
    const list = createFaultList()
    const { id } = list.add(fault({ times: 2, skip: 1 }))
    expect([1, 2, 3, 4].map(() => statusOf(list, '/x'))).toEqual([null, 500, 500, null])
    expect(list.list()).toEqual([expect.objectContaining({ id, left: 0, struck: 2 })])
  })

  it('takes faults in the order in which they were added, and forgets them', () => {
    const list = createFaultList()
    const first = list.add(fault({ status: 501 }))
    list.add(fault({ status: 502 }))
    list.add(fault({ status: 503 }))
    expect(list.remove(first.id)).toBe(true)
    expect(list.remove(first.id)).toBe(false)
    expect(statusOf(list, '/x')).toBe(502)
    list.clear()
    expect(statusOf(list, '/x')).toBe(null)
  })

  it.each([
    ['/v2/deployments', '/v2/deployments', true],
    ['/v2/deployments/', '/v2/deployments', true],
    ['/v2/deployments', '/v2/deployments/', true],
    ['/v2/deployments', '/v2/deployments/1', false],
    ['/v2/deployments/*', '/v2/deployments/1', true],
    ['/v2/deployments/*', '/v2/deployments/1/revisions', false],
    ['/v2/deployments/*/revisions/*', '/v2/deployments/1/revisions/2', true],
    ['/agents/**', '/agents/a/runs/stream', true],
    ['/**/runs', '/api/v1/bulk-exports/1/runs', true],
    ['/a.c', '/abc', false],
  ])('reads the path %s: %s meets it: %j', (pattern, path, meets) => {
    const list = createFaultList()
    list.add(fault({ path: pattern }))
    expect(statusOf(list, path)).toBe(meets ? 500 : null)
  })

  it('tells methods apart', () => {
    const list = createFaultList()
    list.add(fault({ method: 'patch' }))
    expect(statusOf(list, '/x', 'POST')).toBe(null)
    expect(statusOf(list, '/x', 'PATCH')).toBe(500)
  })

  it('holds a thousand at a time; used ones make room', () => {
    const list = createFaultList()
    for (let count = 0; count < 1000; count += 1) list.add(fault({}))
    expect(() => list.add(fault({}))).toThrow(RangeError)
    statusOf(list, '/x')
    list.add(fault({}))
    expect(list.list()).toHaveLength(1000)
  })

  it.each([
    [{}, 'status'],
    [{ headers: { 'Retry-After': '1' }, delay_ms: 1 }, 'headers'],
    [{ body: {}, broken: 'truncated' }, 'body'],
    [{ handled: true, broken: 'stalled' }, 'handled'],
    [{ status: 500, headers: { 'X-A': 'a\r\nb' } }, 'headers.X-A'],
    [{ status: 500, path: 'v2' }, 'path'],
    [{ status: 500, tims: 2 }, ''],
  ])('refuses %j at %s', (fields, place) => {
    const result = faultSchema.safeParse(fields)
    expect(result.error?.issues.map((issue) => issue.path.join('.'))).toEqual([place])
  })
})
