import { startVitest, type TestCase, type TestModule } from 'vitest/node'
import { runChecks } from './check.ts'

/** What a test run came to. `skipped` has one line a test, with the reason that it gave. */
type Tally = { passed: number; failed: number; skipped: string[] }

/** Counts the tests of a module; a module that could not be loaded counts as one failure. */
function tally(modules: readonly TestModule[]): Tally {
  const total: Tally = { passed: 0, failed: 0, skipped: [] }
  for (const module of modules) {
    if (module.state() === 'failed' && module.errors().length > 0) total.failed += 1
    for (const test of module.children.allTests()) count(test, total)
  }
  return total
}

function count(test: TestCase, total: Tally): void {
  const result = test.result()
  if (result.state === 'passed') total.passed += 1
  else if (result.state === 'skipped') {
    total.skipped.push(`${test.module.relativeModuleId} > ${test.fullName}: ${result.note ?? 'no reason given'}`)
  } else total.failed += 1
}

console.log('Checks')
const checks = await runChecks()

console.log('\nTests')
const vitest = await startVitest('test', process.argv.slice(2), { run: true, watch: false })
const tests = tally(vitest.state.getTestModules())
const unhandled = vitest.state.getUnhandledErrors().length
await vitest.close()

if (tests.passed + tests.failed === 0) {
  console.log('no test ran')
  tests.failed += 1
}
if (tests.skipped.length > 0) console.log(`\n${tests.skipped.length} skipped:`)
for (const line of tests.skipped) console.log(`  ${line}`)
if (unhandled > 0) console.log(`\noutside of any test, counted as failed: ${unhandled}`)

const passed = checks.passed + tests.passed
const failed = checks.failed + tests.failed + unhandled
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
