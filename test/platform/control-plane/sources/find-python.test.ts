import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { findPython } from '../../../../src/platform/control-plane/sources/find-python.ts'
import { BuildFailure } from '../../../../src/platform/control-plane/sources/source.ts'
import { memoryLog } from '../../support/memory-log.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'find-python-'))
let serial = 0
afterEach(() => vi.unstubAllEnvs())
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A machine on which these are all the Pythons: programs that tell a version, and what they lack. */
function machineOf(programs: Record<string, { version: string; missing?: string[] } | null>): void {
  const bin = path.join(folder, String((serial += 1)))
  mkdirSync(bin)
  for (const [name, python] of Object.entries(programs)) {
    const answer = python && { executable: path.join(bin, name), minor: Number(python.version.split('.')[1]), missing: [], ...python }
    // A version manager has a program for versions that are not installed: it fails.
    const script = answer === null ? 'echo "not found" >&2; exit 127' : `echo '${JSON.stringify(answer)}'`
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  vi.stubEnv('PATH', bin)
}

const log = memoryLog()
const find = (wanted?: string) =>
  findPython({ configPath: 'langgraph.json', wanted, directory: folder }, { log, signal: new AbortController().signal })

async function failureOf(wanted?: string): Promise<string> {
  const failure = await find(wanted).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(BuildFailure)
  return (failure as Error).message
}

test('python3 is taken where it is new enough, and told', async () => {
  machineOf({ python3: { version: '3.12.3' }, 'python3.14': { version: '3.14.0' } })
  expect(await find()).toMatchObject({ version: '3.12.3' })
  expect(log.text()).toContain('Python 3.12.3')
})

test('a newer one by its name, where python3 is old or a version manager’s', async () => {
  machineOf({ python3: { version: '3.9.2' }, 'python3.14': null, 'python3.11': { version: '3.11.7' }, 'python3.12': { version: '3.12.1' } })
  expect(await find()).toMatchObject({ version: '3.12.1' })
})

test('the wanted version, and no other', async () => {
  machineOf({ python3: { version: '3.12.3' }, 'python3.11': { version: '3.11.7' } })
  expect(await find('3.11')).toMatchObject({ version: '3.11.7' })
  expect(await find('3.12')).toMatchObject({ version: '3.12.3' })
  expect(await failureOf('3.13')).toContain('need the Python 3.13 of $.python_version, and this machine has Python 3.12.3 only')
  for (const wrong of ['3.10', '3.1', '2.7', '4', 'latest', '3.11.7']) {
    expect(await failureOf(wrong)).toContain(`$.python_version is '${wrong}', and should be '3.11' or newer`)
  }
})

test('none, an old one, and one without venv are refused with what to do', async () => {
  machineOf({})
  expect(await failureOf()).toBe(
    'langgraph.json has Python graphs, which need Python 3.11 or newer with venv, and this machine has no Python. ' +
      'Install it, or deploy them as a container image.',
  )
  machineOf({ python3: { version: '3.9.2' } })
  expect(await failureOf()).toContain('this machine has Python 3.9.2 only')
  machineOf({ python3: { version: '3.12.3', missing: ['ensurepip'] } })
  expect(await failureOf()).toContain('the Python 3.12.3 of this machine lacks ensurepip: install its venv package (python3-venv)')
})
