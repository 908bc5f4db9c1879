import { registerHooks } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describeCrash, Unloadable } from './describe-crash.ts'
import { type LaunchMessage, type LaunchOptions, launchOrderSchema } from './launch-options.ts'
import { createRequestCounter } from './request-counter.ts'

// The agent server reads the versions that it reports from package.json files in a way that only loaders like tsx understand.
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    return specifier.endsWith('/package.json') ? { ...resolved, importAttributes: { type: 'json' } } : resolved
  },
})

// Nobody reads after the platform has gone. The agent server logs uncaught errors: unheard, this one would make the next, for ever.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

/** What is left to an agent whose platform has gone, or that was told to end by SIGTERM alone. */
const ORPHAN_GRACE_MS = 1500
const POLL_MS = 100

/**
 * The main program of an agent's process: loads the graphs, serves them, tells the platform the port, and ends in an orderly way.
 */
async function main(): Promise<void> {
  const options = JSON.parse(process.argv[2] ?? '{}') as LaunchOptions
  const counter = createRequestCounter()
  try {
    const { startServer } = await import('@langchain/langgraph-api/server')
    for (const [id, spec] of Object.entries(options.graphs)) await checkGraph(id, spec)
    // Nobody here knows Studio's users: let in, a header that anyone can send would open an agent that has an authorisation of its own.
    const server = await startServer({
      host: options.host,
      port: 0,
      nWorkers: options.workers,
      cwd: options.stateDirectory,
      graphs: options.graphs,
      ...(options.auth === undefined ? {} : { auth: { ...options.auth, disable_studio_auth: true } }),
      ...(options.http === undefined ? {} : { http: { ...HTTP_DEFAULTS, ...options.http } }),
    })
    const port = Number(server.host.slice(server.host.lastIndexOf(':') + 1))
    const address = `http://${options.host}:${port}`
    process.env['PORT'] = String(port)
    process.env['LANGGRAPH_API_URL'] = address
    obey((graceMs) => end({ graceMs, address, counter, cleanup: server.cleanup }))
    tell({ type: 'listening', port })
  } catch (error) {
    process.stderr.write(`${describeCrash(error, import.meta.url)}\n`)
    tell({ type: 'failed', message: String(error instanceof Error ? error.message : error).slice(0, 4000) }, () => process.exit(1))
  }
}

const HTTP_DEFAULTS = {
  disable_assistants: false,
  disable_threads: false,
  disable_runs: false,
  disable_store: false,
  disable_meta: false,
}

/** Loads one graph ahead of the server, whose own words for a missing export name neither the graph nor the export. */
async function checkGraph(id: string, spec: string): Promise<void> {
  const colon = spec.lastIndexOf(':')
  const file = colon === -1 ? spec : spec.slice(0, colon)
  const name = colon === -1 ? 'default' : spec.slice(colon + 1) || 'default'
  const shown = path.relative(process.cwd(), file)
  const module = await load(id, file, shown)
  const graph = await module[name]
  if (graph === undefined || graph === null) {
    throw new Error(`graph '${id}': ${shown} has no export '${name}' (it exports ${Object.keys(module).join(', ') || 'nothing'})`)
  }
  if (typeof graph === 'function') return
  if (typeof graph === 'object' && ('compile' in graph || 'invoke' in graph)) return
  throw new Error(`graph '${id}': the export '${name}' of ${shown} is neither a graph nor a function that makes one`)
}

async function load(id: string, file: string, shown: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Unloadable(`graph '${id}': ${shown} could not be loaded: ${message}`, error)
  }
}

function obey(stop: (graceMs: number) => void): void {
  process.on('message', (message) => {
    const order = launchOrderSchema.safeParse(message)
    if (order.success) stop(order.data.graceMs)
  })
  // The channel alone must not keep the process alive, nor may it live on without it.
  process.channel?.unref()
  process.once('disconnect', () => stop(ORPHAN_GRACE_MS))
  process.once('SIGTERM', () => stop(ORPHAN_GRACE_MS))
  process.once('SIGINT', () => stop(ORPHAN_GRACE_MS))
}

function tell(message: LaunchMessage, then: () => void = () => undefined): void {
  if (process.connected) process.send?.(message, undefined, undefined, then)
  else then()
}

interface Ending {
  readonly graceMs: number
  readonly address: string
  readonly counter: { readonly size: number }
  readonly cleanup: () => Promise<void>
}

let ending = false

/** Waits for requests and background runs, writes the state to disk, and exits. */
async function end({ graceMs, address, counter, cleanup }: Ending): Promise<void> {
  if (ending) return
  ending = true
  const deadline = Date.now() + graceMs
  while (Date.now() < deadline && (counter.size > 0 || (await hasBusyThread(address)))) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  try {
    await cleanup()
  } finally {
    process.exit(0)
  }
}

/** A background run has no request in flight: its thread tells of it. */
async function hasBusyThread(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/threads/search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ status: 'busy', limit: 1 }),
      signal: AbortSignal.timeout(1000),
    })
    const threads: unknown = await response.json()
    return Array.isArray(threads) && threads.length > 0
  } catch {
    // The agent has an authorisation of its own, or has no threads: then only requests count.
    return false
  }
}

await main()
