import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { AssistantAnswer } from '../../contract/run-stream.ts'

const CONFIG_MAX_BYTES = 1_048_576

/** Reads a file of the checkout; undefined when it is not there, or is no configuration by its size. */
export function readCheckout(workspace: string | undefined, path: string): string | undefined {
  if (workspace === undefined || workspace === '') return undefined
  let file: number | undefined
  try {
    file = openSync(join(workspace, path), 'r')
    const buffer = Buffer.alloc(CONFIG_MAX_BYTES + 1)
    const length = readSync(file, buffer)
    return length > CONFIG_MAX_BYTES ? undefined : buffer.toString('utf8', 0, length)
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** The first graph that a graph configuration names; undefined when the text is none. */
export function firstGraph(config: string): string | undefined {
  try {
    const { graphs } = JSON.parse(config) as { graphs?: unknown }
    if (typeof graphs !== 'object' || graphs === null || Array.isArray(graphs)) return undefined
    return Object.keys(graphs).find((name) => name !== '')
  } catch {
    return undefined
  }
}

/** The graph of the first assistant, and how many graphs the server has. */
export function firstListed(assistants: readonly AssistantAnswer[]): { graph: string; others: number } | undefined {
  const graphs = [...new Set(assistants.map(({ graph_id: graph }) => graph))]
  const [graph] = graphs
  return graph === undefined ? undefined : { graph, others: graphs.length - 1 }
}
