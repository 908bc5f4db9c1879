import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { inRoot } from '../scripts/root.ts'
import { runNode } from '../scripts/run.ts'

/** What a step costs before it does anything: the bundle's size, and its start up to the error of a missing input. */

const RUNS = 30
const WARM_UPS = 3
const RESULTS = inRoot('bench', 'results', 'start.json')

type Subject = { name: string; script: string; exitCode: number }
type Timing = { name: string; medianMs: number; minMs: number; maxMs: number; ratio: number }

/** The toolkit that every JavaScript action carries, alone: it reads an input and fails. */
const TOOLKIT = `import { getInput, setFailed } from '@actions/core'
try { getInput('api-key', { required: true }) } catch (error) { setFailed(error) }
`

async function prepare(folder: string): Promise<Subject[]> {
  const empty = join(folder, 'empty.mjs')
  writeFileSync(empty, '')
  // Inside the repository, where the bundler finds the packages.
  const entry = inRoot('build', 'bench', 'toolkit.js')
  mkdirSync(dirname(entry), { recursive: true })
  writeFileSync(entry, TOOLKIT)
  const out = join(folder, 'toolkit')
  const bundled = await runNode(['node_modules/@vercel/ncc/dist/ncc/cli.js', 'build', entry, '--out', out, '--no-cache', '--quiet'])
  if (bundled.code !== 0) throw new Error(`the toolkit could not be bundled:\n${bundled.output}`)
  return [
    { name: 'empty script', script: empty, exitCode: 0 },
    { name: 'toolkit alone', script: join(out, 'index.js'), exitCode: 1 },
    { name: 'dist/index.js', script: inRoot('dist', 'index.js'), exitCode: 1 },
  ]
}

/** Milliseconds from the start of the process to its end. */
function start({ name, script, exitCode }: Subject, env: NodeJS.ProcessEnv): number {
  const begin = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [script], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const took = performance.now() - begin
  if (status !== exitCode) throw new Error(`${name} ended with ${status}, not ${exitCode}:\n${stderr.toString()}`)
  return took
}

/** An environment as a step has it, without a single input. */
function stepEnvironment(folder: string): NodeJS.ProcessEnv {
  const files = ['GITHUB_OUTPUT', 'GITHUB_STATE', 'GITHUB_STEP_SUMMARY'].map((name) => {
    const path = join(folder, name)
    writeFileSync(path, '')
    return [name, path] as const
  })
  return { PATH: process.env['PATH'], HOME: folder, ...Object.fromEntries(files) }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = sorted.length % 2 === 1 ? [sorted[middle], sorted[middle]] : [sorted[middle - 1], sorted[middle]]
  return (low + high) / 2
}

/** Measures in turn, one run of each after the other, so that a busy moment of the machine hits all alike. */
function measure(subjects: readonly Subject[], env: NodeJS.ProcessEnv): Timing[] {
  const times = new Map(subjects.map(({ name }) => [name, [] as number[]]))
  for (let run = 0; run < WARM_UPS + RUNS; run += 1) {
    for (const subject of subjects) {
      const took = start(subject, env)
      if (run >= WARM_UPS) times.get(subject.name)?.push(took)
    }
  }
  const base = median(times.get(subjects[0]?.name ?? '') ?? [])
  return [...times].map(([name, values]) => ({
    name,
    medianMs: median(values),
    minMs: Math.min(...values),
    maxMs: Math.max(...values),
    ratio: median(values) / base,
  }))
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(0)} kB`
}

const folder = mkdtempSync(join(tmpdir(), 'bench-start-'))
try {
  const subjects = await prepare(folder)
  const timings = measure(subjects, stepEnvironment(folder))
  const bundle = readFileSync(inRoot('dist', 'index.js'))
  const toolkitBytes = statSync(subjects[1]?.script ?? '').size
  const size = { bytes: bundle.byteLength, gzipBytes: gzipSync(bundle).byteLength, toolkitBytes }

  console.log(`dist/index.js: ${kilobytes(size.bytes)}, compressed ${kilobytes(size.gzipBytes)}`)
  console.log(`the toolkit alone: ${kilobytes(toolkitBytes)}\n`)
  console.log('cold start             median        min        max   ratio')
  for (const { name, medianMs, minMs, maxMs, ratio } of timings) {
    const [mid, low, high] = [medianMs, minMs, maxMs].map((value) => `${value.toFixed(1)} ms`.padStart(11))
    console.log(`${name.padEnd(18)}${mid}${low}${high}${`${ratio.toFixed(2)}x`.padStart(8)}`)
  }
  console.log(`\n${RUNS} runs of each, in turn; Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`)

  mkdirSync(dirname(RESULTS), { recursive: true })
  const machine = { node: process.versions.node, cpus: cpus().length, model: cpus()[0]?.model }
  writeFileSync(RESULTS, `${JSON.stringify({ at: new Date().toISOString(), runs: RUNS, machine, size, timings }, null, 2)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
