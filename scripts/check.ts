import { availableParallelism } from 'node:os'
import { runNode } from './run.ts'

/** A named check: a script that prints what is wrong and ends with an exit code other than 0. */
type Check = { name: string; script: readonly string[] }

// The slow ones first, so that the short ones fill the gaps.
const CHECKS: readonly Check[] = [
  { name: 'dist', script: ['scripts/checks/dist.ts'] },
  { name: 'types', script: ['node_modules/typescript/bin/tsc'] },
  { name: 'unused code', script: ['node_modules/knip/bin/knip.js', '--no-progress'] },
  { name: 'workflows', script: ['scripts/checks/workflows.ts'] },
  { name: 'lint', script: ['node_modules/oxlint/bin/oxlint', '--deny-warnings'] },
  { name: 'imports', script: ['scripts/checks/imports.ts'] },
  { name: 'generated files', script: ['scripts/docs.ts', '--check'] },
  { name: 'fidelity', script: ['scripts/checks/fidelity.ts'] },
  { name: 'readme', script: ['scripts/checks/readme.ts'] },
  { name: 'file rules', script: ['scripts/checks/file-rules.ts'] },
]

/** How many checks passed and how many failed. */
export type CheckCount = { passed: number; failed: number }

/** Runs every check, as many at once as there are processors; prints one line for each, and the output of those that failed. */
export async function runChecks(checks: readonly Check[] = CHECKS): Promise<CheckCount> {
  const count = { passed: 0, failed: 0 }
  const waiting = [...checks]
  const worker = async (): Promise<void> => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const { code, output, seconds } = await runNode(check.script)
      const time = `${seconds.toFixed(1)} s`
      if (code === 0) {
        count.passed += 1
        console.log(`ok      ${check.name.padEnd(16)} ${time}`)
      } else {
        count.failed += 1
        console.log(`failed  ${check.name.padEnd(16)} ${time}\n${indent(output)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, worker))
  return count
}

function indent(text: string): string {
  return text.trimEnd().replace(/^(?=.)/gm, '        ')
}

if (import.meta.main) {
  const names = process.argv.slice(2)
  const unknown = names.filter((name) => !CHECKS.some((check) => check.name === name))
  if (unknown.length > 0) {
    console.error(`no check is called ${unknown.join(', ')}; there are: ${CHECKS.map((check) => check.name).join(', ')}`)
    process.exitCode = 1
  } else {
    const { failed } = await runChecks(names.length === 0 ? CHECKS : CHECKS.filter((check) => names.includes(check.name)))
    process.exitCode = failed === 0 ? 0 : 1
  }
}
