import type { BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import { createProcessRuntime } from '../../../src/platform/control-plane/runtimes/process.ts'

/** A stand-in for a platform that is killed: starts an agent (first argument, as JSON), tells of it, and stays. */
const agent = JSON.parse(process.argv[2] ?? '') as BuiltAgent
const running = await createProcessRuntime().start(
  { revisionId: 'orphan', agent, env: {} },
  { log: { write: () => undefined }, signal: new AbortController().signal, timeoutMs: 30_000 },
)
process.stdout.write(`${JSON.stringify({ reference: running.reference })}\n`)
setInterval(() => undefined, 1000)
