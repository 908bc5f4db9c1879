import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createIo } from '../../src/action/io.ts'
import { createRedactor } from '../../src/action/masks.ts'
import { INPUT_NAMES } from '../../src/action/registry.ts'

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

  it.each([
    ['export-access-key-id', 'AKIA-1234'],
    ['export-secret-access-key', 'secret-1234'],
    ['export-session-token', 'token-1234'],
    ['github-token', 'ghs-1234'],
  ])('masks %s', (name, value) => {
    vi.stubEnv(`INPUT_${name.toUpperCase()}`, value)
    const redactor = createRedactor()
    open(redactor).readInputs()
    expect(printed).toContain(`::add-mask::${value}`)
    expect(redactor.redact(`it is ${value}`)).toBe('it is ***')
  })

  it('masks a key of one character', () => {
    vi.stubEnv('INPUT_API-KEY', 'k')
    const redactor = createRedactor()
    open(redactor).readInputs()
    expect(printed).toBe('::add-mask::k\n')
    expect(redactor.redact('key')).toBe('***ey')
  })

  it.each([
    ['a name that is no secret', 'INPUT_DEPLOYMENT-NAME', 'agent'],
    ['a text that is no address', 'INPUT_SMOKE-TEST-EXPECT', 'https://token-1@github.com'],
    ['an address without credentials', 'INPUT_REPO-URL', 'https://github.com/acme/agents'],
    ['an @ of the path', 'INPUT_REPO-URL', 'https://github.com/acme/agents@next'],
    ['an @ of the query', 'INPUT_REPO-URL', 'https://github.com?next@main'],
    ['an @ of the fragment', 'INPUT_REPO-URL', 'https://github.com#next@main'],
    ['the user of ssh in capitals', 'INPUT_REPO-URL', 'SSH://deployer@host.example.com/acme/agents'],
    ['a name in front of a host', 'INPUT_REPO-URL', 'git@github.com:acme/agents'],
    ['a longer name in front of a host', 'INPUT_REPO-URL', 'deployer@host.example.com:acme/agents.git'],
    ['what only looks like a password in the path', 'INPUT_REPO-URL', 'https://github.com/acme/agents:next@main'],
    ['the same without a scheme', 'INPUT_REPO-URL', 'github.com/acme/agents:next@main'],
    ['the same behind a port', 'INPUT_REPO-URL', 'github.com:8443/acme/agents:next@main'],
  ])('masks nothing of %s', (_, name, value) => {
    vi.stubEnv(name, value)
    open().readInputs()
    expect(printed).toBe('')
  })

  it.each([
    ['https://token-1@github.com/acme/agents', 'token-1'],
    ['HTTPS://token-1@github.com/acme/agents', 'token-1'],
    ['//token-1@github.com/acme/agents', 'token-1'],
    ['https://octocat:pass-word@github.com/acme/agents', 'pass-word'],
    ['https://octocat:pass:word@github.com/acme/agents', 'pass:word'],
    ['ssh://octocat:pass-word@github.com/acme/agents', 'pass-word'],
    ['https://:pass-word@github.com/acme/agents', 'pass-word'],
    ['octocat:pass-word@github.com/acme/agents', 'pass-word'],
    ['octocat:pass@word@proxy.example.com:3128', 'pass@word'],
    ['octocat:pass/word@github.com', 'pass/word'],
    ['git:pass-word@github.com:acme/agents', 'pass-word'],
    ['token-1@github.com/acme/agents', 'token-1'],
    ['https:octocat:pass-word@github.com/acme/agents', 'pass-word'],
    ['https://octocat:pass/word@github.com/acme/agents', 'pass/word'],
  ])('masks what is secret in %s', (address, secret) => {
    vi.stubEnv('INPUT_REPO-URL', address)
    open().readInputs()
    expect(printed).toBe(`::add-mask::${secret}\n`)
  })

  it('keeps the white space of a value of several lines, and trims every other', () => {
    vi.stubEnv('INPUT_SECRETS', '  A=hunter2-text \n')
    vi.stubEnv('INPUT_TIMEOUT', ' 5m ')
    expect(open().readInputs()).toMatchObject({ secrets: '  A=hunter2-text \n', timeout: '5m' })
  })

  it('gives every input of action.yml', () => {
    expect(Object.keys(open().readInputs())).toEqual(INPUT_NAMES)
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

  it('show stars where the key was, each time, and every value as it is where there is no key', () => {
    vi.stubEnv('INPUT_API-KEY', 'key-1')
    const io = open()
    io.readInputs()
    io.setOutput('deployment-url', 'https://key-1.example.com/key-1')
    expect(written('OUTPUT')).toMatch(/\nhttps:\/\/\*\*\*\.example\.com\/\*\*\*\n/)
    vi.stubEnv('INPUT_API-KEY', '')
    const keyless = open()
    keyless.readInputs()
    keyless.setOutput('deployment-name', 'agent')
    expect(written('OUTPUT')).toMatch(/\nagent\n/)
  })

  describe('carry no secret', () => {
    const REVISION = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'
    const reading = (inputs: Record<string, string>) => {
      for (const [name, value] of Object.entries(inputs)) vi.stubEnv(`INPUT_${name.toUpperCase()}`, value)
      const io = open()
      io.readInputs()
      return io
    }
    const valuesIn = (name: string) =>
      Object.fromEntries([...written(name).matchAll(/^(.+)<<(\S+)\n(.*)\n\2$/gm)].map(([, key, , value]) => [key, value]))

    it.each([
      ['api-key', 'key-1'],
      ['secrets', 'A=key-1'],
      ['secrets', 'A={"x": "key-1"}'],
      ['secrets', 'A<<END\nfirst line\nkey-1\nEND'],
      ['export-secret-access-key', 'key-1'],
      ['github-token', 'key-1'],
      ['repo-url', 'https://octocat:key-1@github.com/acme/agents'],
      ['repo-url', 'octocat:key-1@github.com/acme/agents'],
    ])('of %s: %j', (input, value) => {
      const io = reading({ [input]: value })
      io.setOutput('deployment-url', 'https://key-1.example.com/?key=key-1')
      io.setOutput('revision-id', 'key-1')
      expect(io.saveState('pending', "create the deployment 'key-1'")).toBe(true)
      expect(io.saveState('revisionId', 'key-1')).toBe(true)
      expect(valuesIn('OUTPUT')).toEqual({ 'deployment-url': 'https://***.example.com/?key=***', 'revision-id': '***' })
      expect(valuesIn('STATE')).toEqual({ pending: "create the deployment '***'", revisionId: '***' })
    })

    it('in the form that an address gives it', () => {
      const io = reading({ secrets: 'A=p/ss word' })
      io.setOutput('deployment-url', 'https://x.example.com/?key=p%2Fss%20word')
      expect(valuesIn('OUTPUT')).toEqual({ 'deployment-url': 'https://x.example.com/?key=***' })
    })

    it('that is an id as a whole, and keep an id in which one stands by chance', () => {
      const io = reading({ secrets: `PORT=4d2b\nSHORT=0016\nCLIENT=${REVISION}` })
      const [other, commit] = [REVISION.replace('1b4e', '0016'), '0016'.repeat(10)]
      io.setOutput('previous-revision-id', REVISION)
      io.setOutput('revision-id', other)
      io.setOutput('commit-sha', commit)
      io.setOutput('deployment-url', `https://x.example.com/${commit}0016`)
      io.saveState('revisionId', other)
      expect(valuesIn('OUTPUT')).toEqual({
        'previous-revision-id': '***',
        'revision-id': other,
        'commit-sha': commit,
        'deployment-url': `https://x.example.com/${'***'.repeat(11)}`,
      })
      expect(valuesIn('STATE')).toEqual({ revisionId: other })
    })

    it('and keep what open inputs say, unless it is the key', () => {
      const secrets = 'STAGE=production\nHOST=corp.example.com\nREGION=eu-central-1\nTOKEN=hunter2'
      const open = { 'deployment-name': 'agent-production', 'control-plane-url': 'https://corp.example.com/?hunter2' }
      const io = reading({ 'api-key': 'agent', secrets, ...open, 'image-uri': 'u:hunter2@ecr.eu-central-1.example.com/a' })
      io.setOutput('deployment-name', 'agent-production')
      io.setOutput('deployment-url', 'https://production.corp.example.com/hunter2')
      io.setOutput('image-uri', 'ecr.eu-central-1.example.com/a@sha256:0123')
      expect(valuesIn('OUTPUT')).toEqual({
        'deployment-name': '***-production',
        'deployment-url': 'https://production.corp.example.com/***',
        'image-uri': 'ecr.eu-central-1.example.com/a@sha256:0123',
      })
    })

    it('and keep the words and numbers of the action itself', () => {
      const own = {
        status: 'deployed',
        created: 'true',
        'smoke-test': 'passed',
        'smoke-test-first-event-ms': '18000',
        'export-rows': '80001',
        'export-files': '8000',
        'error-code': 'E_TIMEOUT',
      } as const
      const io = reading({ secrets: 'A=deployed\nB=passed\nC=8000\nD=E_TIMEOUT' })
      for (const [name, value] of Object.entries(own)) io.setOutput(name as keyof typeof own, value)
      expect(valuesIn('OUTPUT')).toEqual(own)
    })

    it('in a record, which stays one', () => {
      const io = reading({
        secrets: 'LEVEL=error\nPORT=8000\nKEYS=description\nQUOTED=a"b"c\nLINE=":8000001',
        environment: 'staging',
      })
      const end = { state: 'error', description: 'an error with a"b"c at 8000' }
      io.saveState('deploymentRecord', JSON.stringify({ environment: 'staging', step: REVISION, id: 8000001, end }))
      expect(JSON.parse(valuesIn('STATE')['deploymentRecord'] ?? '')).toEqual({
        environment: 'staging',
        step: REVISION,
        id: 8000001,
        end: { state: 'error', description: 'an *** with *** at ***' },
      })
      expect(io.saveState('deploymentRecord', '')).toBe(true)
      expect(written('STATE')).toMatch(/deploymentRecord<<(\S+)\n\n\1\n$/)
    })
  })

  it('read back what the step left for post', () => {
    vi.stubEnv('STATE_isPost', 'true')
    expect(open().getState('isPost')).toBe('true')
    expect(open().getState('deploymentId')).toBe('')
  })

  it('say that an output file is a folder', () => {
    vi.stubEnv('GITHUB_OUTPUT', folder)
    expect(open().outputProblem()).toBe(`${folder} is not a file`)
  })

  it('keep the first problem of the output file', () => {
    vi.stubEnv('GITHUB_OUTPUT', join(folder, 'gone'))
    const io = open()
    const first = io.outputProblem()
    expect(first).toContain('ENOENT')
    vi.stubEnv('GITHUB_OUTPUT', join(folder, 'elsewhere'))
    io.setOutput('status', 'deployed')
    expect(io.outputProblem()).toBe(first)
  })

  it.each([undefined, ''])('go without a file where the runner names none: %j', (path) => {
    expect(createIo({ env: { GITHUB_OUTPUT: path }, redactor: createRedactor() }).outputProblem()).toBeUndefined()
  })

  it('append to the summary that is there', () => {
    const io = open()
    io.writeSummary('# one')
    io.writeSummary('# two')
    expect(written('STEP_SUMMARY')).toBe('# one\n# two\n')
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
