import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createIo } from '../../src/action/io.ts'
import { createRedactor } from '../../src/action/masks.ts'

let folder: string
let printed: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'io-test-'))
  printed = ''
  for (const name of ['OUTPUT', 'STATE', 'STEP_SUMMARY']) {
    writeFileSync(join(folder, name), '')
    vi.stubEnv(`GITHUB_${name}`, join(folder, name))
  }
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text)
    return true
  })
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  chmodSync(folder, 0o700)
  rmSync(folder, { recursive: true })
})

const open = (redactor = createRedactor()) => createIo({ env: process.env, redactor })
const written = (name: string) => readFileSync(join(folder, name), 'utf8')

describe('readInputs', () => {
  it('masks the key before anything else, then every secret value, and whatever stands where a password does', () => {
    vi.stubEnv('INPUT_API-KEY', ' key-1 ')
    vi.stubEnv('INPUT_SECRETS', 'A=hunter2\nB={"x":"leaf-value"}\nrest of a value\n')
    vi.stubEnv('INPUT_REPO-URL', 'https://octocat:pass-word@github.com/acme/agents')
    vi.stubEnv('INPUT_CONTROL-PLANE-URL', 'https://token-1@corp.example.com')
    const redactor = createRedactor()
    const raw = open(redactor).readInputs()
    const masks = printed.split('\n').filter((line) => line.startsWith('::add-mask::'))
    expect(masks.map((line) => line.slice('::add-mask::'.length))).toEqual([
      'key-1',
      'hunter2',
      '{"x":"leaf-value"}',
      'leaf-value',
      'rest of a value',
      'token-1',
      'pass-word',
    ])
    expect(raw['api-key']).toBe('key-1')
    expect(redactor.redact('key-1 hunter2 leaf-value')).toBe('*** *** ***')
  })

  it('does not take the user name of ssh for a secret', () => {
    vi.stubEnv('INPUT_REPO-URL', 'ssh://deployer@host.example.com/acme/agents')
    open().readInputs()
    expect(printed).not.toContain('add-mask')
  })

  it('takes white space for unset', () => {
    vi.stubEnv('INPUT_SECRETS', ' \n ')
    vi.stubEnv('INPUT_TIMEOUT', '  ')
    expect(open().readInputs()).toMatchObject({ secrets: '', timeout: '', 'api-key': '' })
  })
})

describe('outputs, state and summary', () => {
  it('are written to the files of the runner', () => {
    const io = open()
    io.setOutput('status', 'deployed')
    expect(io.saveState('isPost', 'true')).toBe(true)
    io.writeSummary('# done')
    expect(written('OUTPUT')).toMatch(/^status<<(\S+)\ndeployed\n\1\n$/)
    expect(written('STATE')).toMatch(/^isPost<<(\S+)\ntrue\n\1\n$/)
    expect(written('STEP_SUMMARY')).toBe('# done\n')
    expect(io.outputProblem()).toBeUndefined()
  })

  it('never carry the key', () => {
    vi.stubEnv('INPUT_API-KEY', 'key-1')
    const io = open()
    io.readInputs()
    io.setOutput('deployment-url', 'https://x.example.com/key-1')
    expect(written('OUTPUT')).not.toContain('key-1')
  })

  it('report an output file that is missing, before and after the first write, and never throw', () => {
    vi.stubEnv('GITHUB_OUTPUT', join(folder, 'gone'))
    expect(open().outputProblem()).toContain('gone')
    vi.stubEnv('GITHUB_OUTPUT', join(folder, 'OUTPUT'))
    const io = open()
    rmSync(join(folder, 'OUTPUT'))
    io.setOutput('status', 'deployed')
    expect(io.outputProblem()).toContain('OUTPUT')
  })

  it('say that the state file cannot be written', () => {
    vi.stubEnv('GITHUB_STATE', join(folder, 'gone'))
    expect(open().saveState('isPost', 'true')).toBe(false)
  })

  it('throw for a summary that cannot be written, and do without one where the runner has none', () => {
    vi.stubEnv('GITHUB_STEP_SUMMARY', folder)
    expect(() => open().writeSummary('x')).toThrow('EISDIR')
    vi.stubEnv('GITHUB_STEP_SUMMARY', '')
    expect(() => open().writeSummary('x')).not.toThrow()
  })
})
