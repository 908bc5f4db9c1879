import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { inRoot } from '../scripts/root.ts'
import { type BenchName, type Figure, FIGURES, type Results } from './support/figures.ts'

/**
 * Every figure of the project in one table, from what the benches have written into bench/results. What has not been measured on this machine
 * is measured first, one bench after the other; `--again` measures all anew, `--show` none.
 */
const NAMES = Object.keys(FIGURES) as BenchName[]

function resultsOf(name: BenchName): string {
  return inRoot('bench', 'results', `${name}.json`)
}

/** Runs a bench, whose output is shown as it comes. */
function measure(name: BenchName): Promise<boolean> {
  console.log(`\nMeasuring: npm run bench:${name}`)
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [inRoot('bench', `${name}.ts`)], { stdio: 'inherit' })
    child.once('error', () => resolve(false))
    child.once('close', (code) => resolve(code === 0))
  })
}

/** The lines of one bench, with a last one that says when and where they were measured. */
function read<Name extends BenchName>(name: Name): { figures: Figure[]; measured: string } | null {
  if (!existsSync(resultsOf(name))) return null
  const results = JSON.parse(readFileSync(resultsOf(name), 'utf8')) as Results[Name] & {
    at: string
    machine?: { node: string; cpus: number; model?: string }
  }
  const { machine } = results
  const place = machine === undefined ? '' : `, ${machine.cpus} processors (${machine.model ?? 'unknown'}), Node ${machine.node}`
  return {
    figures: FIGURES[name](results).map((figure) => ({ bench: name, ...figure })),
    measured: `${results.at.slice(0, 16).replace('T', ' ')} UTC${place}`,
  }
}

function print(figures: readonly Figure[]): void {
  const columns = ['bench', 'what', 'figure', 'ratio', 'of'] as const
  const head: Record<(typeof columns)[number], string> = {
    bench: 'bench',
    what: 'what',
    figure: 'figure',
    ratio: 'ratio',
    of: 'compared with',
  }
  const widths = columns.map((column) => Math.max(head[column].length, ...figures.map((figure) => figure[column].length)))
  const row = (cells: Record<(typeof columns)[number], string>) =>
    columns
      .map((column, index) => cells[column].padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  console.log(`\n${row(head)}\n${widths.map((width) => '-'.repeat(width)).join('  ')}`)
  let before = ''
  for (const figure of figures) {
    console.log(row({ ...figure, bench: figure.bench === before ? '' : figure.bench }))
    before = figure.bench
  }
}

const flags = process.argv.slice(2)
const unknown = flags.filter((flag) => flag !== '--again' && flag !== '--show')
if (unknown.length > 0) {
  console.error(`no option is called ${unknown.join(', ')}; there are: --again, --show`)
  process.exit(1)
}
const failed: string[] = []
if (!flags.includes('--show')) {
  for (const name of NAMES) {
    if (!flags.includes('--again') && existsSync(resultsOf(name))) continue
    if (!(await measure(name))) failed.push(name)
  }
}
const all = NAMES.map((name) => [name, read(name)] as const)
print(all.flatMap(([, results]) => results?.figures ?? []))
console.log()
for (const [name, results] of all) {
  console.log(`${name.padEnd(14)} ${results === null ? `not measured: npm run bench:${name}` : results.measured}`)
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`)
  process.exitCode = 1
}
