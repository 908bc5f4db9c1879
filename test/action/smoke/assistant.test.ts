import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { firstGraph, firstListed, readCheckout } from '../../../src/action/smoke/assistant.ts'

const workspace = mkdtempSync(join(tmpdir(), 'checkout-'))
afterAll(() => rmSync(workspace, { recursive: true, force: true }))

describe('the checkout', () => {
  it('gives the file that is there', () => {
    writeFileSync(join(workspace, 'langgraph.json'), '{"graphs":{"agent":"./a.ts:graph"}}')
    expect(firstGraph(readCheckout(workspace, 'langgraph.json') ?? '')).toBe('agent')
  })

  it('gives nothing where there is none', () => {
    expect(readCheckout(workspace, 'other.json')).toBeUndefined()
    expect(readCheckout(workspace, '.')).toBeUndefined()
    expect(readCheckout(undefined, 'langgraph.json')).toBeUndefined()
    expect(readCheckout('', 'langgraph.json')).toBeUndefined()
  })

  it('gives nothing of a file that is far too long', () => {
    writeFileSync(join(workspace, 'long.json'), ' '.repeat(1_048_577))
    expect(readCheckout(workspace, 'long.json')).toBeUndefined()
  })
})

describe('the server’s list', () => {
  it('is counted by graphs', () => {
    const assistant = (id: string, graph: string) => ({ assistant_id: id, graph_id: graph, name: null })
    expect(firstListed([assistant('1', 'a'), assistant('2', 'b'), assistant('3', 'a')])).toEqual({ graph: 'a', others: 1 })
    expect(firstListed([])).toBeUndefined()
  })
})
