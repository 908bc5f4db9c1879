import { mkdir, rm } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { LogRecord, ScriptStep } from '../support/control-plane-model.ts'
import { faults } from '../support/fault-server.ts'
import type { FileCommandPaths } from '../support/runner/file-commands.ts'
import type { PhaseResult, RunResult } from '../support/runner.ts'
import { AGENT_SECRET, DEPLOYED, failed, withScene } from '../support/scene.ts'

/** What a runner could be made to do by text that it only passes on. Everything that works says INJECTED. */
const COMMANDS = [
  '::error::INJECTED', '  ::error title=INJECTED::INJECTED', '::warning::INJECTED', '::notice::INJECTED', '::add-mask::INJECTED',
  '::set-output name=injected::INJECTED', '::save-state name=injected::INJECTED', '::set-env name=INJECTED::1',
  '::add-path::/INJECTED', '::group::INJECTED', '::endgroup::', '::stop-commands::INJECTED-token', '::echo::on',
  '::debug::INJECTED', '::add-matcher::/INJECTED.json', '##[error]INJECTED', 'harmless ##[add-mask]INJECTED',
  'harmless ##[set-output name=injected;]INJECTED', '##[group]INJECTED', 'progress 10%\r::error::INJECTED',
  'two lines\n::error::INJECTED', 'two lines\r\n##[error]INJECTED', '\u0085::error::INJECTED', '\u2028::error::INJECTED',
  '\u00a0::error::INJECTED', '\ufeff::error::INJECTED', '\u001b[31m::error::INJECTED', '\u001b]0;INJECTED\u0007',
  '%0A::error::INJECTED', ':\u200b:error::INJECTED', '#\u200b#[error]INJECTED', '#\u001b[0m#[error]INJECTED',
  ':\u001b[0m:error::INJECTED',
]

/** What Markdown, HTML and Mermaid could be made to do in the job summary. */
const MARKUP = [
  '</pre></details><script>alert(1)</script>', '<img src=x onerror=alert(1)>', '```\n# INJECTED', '~~~',
  '[click](javascript:alert(1))', '![x](https://evil.test/pixel.png)', '| a | b |\n|---|---|', '<!-- hidden', '# INJECTED',
  '> INJECTED', '@octocat', '#1', '<svg/onload=x>', '`; code', '---', '&lt;script&gt;', '\n\n<h1>INJECTED</h1>\n\n',
  '```mermaid\ngraph TD; A-->B\n```', 'a\\`b', '$\\href{javascript:1}{x}$',
]

const TAGS = new Set(['a', 'b', 'br', 'code', 'details', 'i', 'li', 'pre', 'sub', 'summary', 'table', 'td', 'th', 'tr', 'ul'])
const OWN_COMMANDS = new Set(['add-mask', 'debug', 'endgroup', 'error', 'group', 'notice', 'stop-commands', 'warning'])

/** Everything that hostile text has achieved. */
function achievements(result: RunResult): string[] {
  return [result, ...(result.post === null ? [] : [result.post])].flatMap((phase) => [...commandsOf(phase), ...markupOf(phase)])
}

function commandsOf(result: PhaseResult): string[] {
  const foreign = result.commandsIssued.filter(({ name, legacy }) => legacy || !OWN_COMMANDS.has(name))
  const masked = result.commandsIssued.filter(({ name, data }) => name === 'add-mask' && data.includes('INJECTED'))
  const injected = [
    ...result.annotations.map(({ title }) => title).filter((title) => title.includes('INJECTED')),
    ...result.annotations.map(({ message }) => message).filter((message) => /^\s*INJECTED/.test(message)),
    ...result.groups.map(({ title }) => title).filter((title) => title.includes('INJECTED')),
    ...masked.map(({ line }) => line),
    ...Object.keys({ ...result.outputs, ...result.state, ...result.env }).filter((name) => /injected/i.test(name)),
    ...result.path,
  ]
  return [
    ...foreign.map(({ line }) => `a command that is not the action's: ${line}`),
    ...injected.map((text) => `injected: ${text}`),
    ...(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u2028]/.test(result.stdout) ? ['a control character in the log'] : []),
  ]
}

function markupOf({ summary }: PhaseResult): string[] {
  const tags = [...summary.matchAll(/<\/?([a-zA-Z!][\w-]*)/g)].map(([, tag]) => tag?.toLowerCase() ?? '')
  // Inside of <pre> only HTML means something.
  const markdown = summary.replace(/<pre>.*?<\/pre>/gs, '')
  const fences = markdown.match(/^\s*(```|~~~)/gm) ?? []
  return [
    ...tags.filter((tag) => !TAGS.has(tag)).map((tag) => `a tag in the summary: <${tag}`),
    ...(fences.length > 2 ? [`${fences.length} fences in the summary`] : []),
    ...(/\]\(javascript|href="javascript|!\[|^# INJECTED|^<h1/m.test(markdown) ? ['markup in the summary'] : []),
    ...(/(^|[\s>])@octocat/.test(markdown) ? ['a mention in the summary'] : []),
  ]
}

const records = (lines: readonly string[]): LogRecord[] => lines.map((message) => ({ message }))
const failing = (message = ''): readonly ScriptStep[] => [['BUILDING'], ['BUILD_FAILED', { message }]]

describe.concurrent('hostile text', () => {
  it.each([['workflow commands', COMMANDS], ['markup', MARKUP]])('of %s in a build log', (_, lines) =>
    withScene({}, async ({ plane, run, flaws }) => {
      // Each ten of them become the annotation's excerpt once.
      for (let start = 0; start < lines.length; start += 10) {
        plane.scriptNext(failing(lines[start]), { build: records(lines.slice(0, start + 10)) })
        const result = await run({ with: { 'deployment-name': `echo-${start}` } })
        expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
        expect(achievements(result)).toEqual([])
      }
    }), 60_000)

  it('in the levels and times of log entries', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const entries = COMMANDS.map((text) => ({ message: text, level: text, timestamp: text }))
      plane.scriptNext(failing(), { build: entries })
      const result = await run()
      expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
      expect(achievements(result)).toEqual([])
    }))

  it.each([...COMMANDS, ...MARKUP].map((text) => [text]))('%j in statuses and their messages', (text) =>
    withScene({ script: [[text, { message: text }], ['BUILD_FAILED', { message: text }]] }, async ({ run, flaws }) => {
      const result = await run({ post: false })
      expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
      expect(achievements(result)).toEqual([])
    }))

  it('in every field of every answer', async () => {
    const texts = [...COMMANDS, ...MARKUP]
    let next = 0
    const poison = (value: unknown, key = ''): unknown => {
      if (Array.isArray(value)) return value.map((item) => poison(item))
      if (typeof value === 'object' && value !== null) {
        return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, poison(part, name)]))
      }
      // Ids and statuses stay, so that the step goes on; what is compared stays, so that it is not refused.
      if (typeof value !== 'string' || /(^|_)id$|^status$|^source$|^repo_url$/.test(key)) return value
      return texts[next++ % texts.length]
    }
    const rewrite = (body: unknown) => poison(body)
    await withScene({ script: [['BUILDING'], ['DEPLOYED']], rewrite }, async ({ plane, run, flaws }) => {
      const sourceConfig = { repo_url: 'https://github.com/acme/agents' }
      const others = [{ name: 'A', value: 'b' }]
      const { id } = plane.addDeployment({ name: 'echo', sourceConfig, config: { repo_ref: 'main' }, secrets: others })
      for (let round = 0; round < 5; round++) {
        const result = await run({ with: { 'deployment-name': '', 'deployment-id': id } })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(achievements(result)).toEqual([])
      }
      expect(next).toBeGreaterThan(texts.length)
    })
  }, 60_000)

  it.each([
    ['the detail of a refusal', { detail: COMMANDS.join('\n') + MARKUP.join('\n') }],
    ['the faults of a 422', { detail: [...COMMANDS, ...MARKUP].map((text) => ({ loc: ['body', text], msg: text, type: text })) }],
    ['a body that is no JSON', [...COMMANDS, ...MARKUP].join('\n')],
  ])('in %s', (_, body) =>
    withScene({}, async ({ network, run, flaws }) => {
      const headers = { 'x-request-id': '::error::INJECTED ##[error]INJECTED' }
      network.on({ method: 'POST' }, { kind: 'answer', status: 422, body, headers })
      const result = await run()
      expect(await flaws(result, failed('E_VALIDATION'))).toEqual([])
      expect(achievements(result)).toEqual([])
    }))

  it('in a page that a proxy sends', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on({ times: Infinity }, { kind: 'answer', status: 200, body: `<html>\n${[...COMMANDS, ...MARKUP].join('\n')}` })
      const result = await run({ with: { timeout: '5s' } })
      expect(await flaws(result, failed('E_PROTOCOL'))).toEqual([])
      expect(achievements(result)).toEqual([])
    }))

  it('in a redirect', () =>
    withScene({}, async ({ network, run, flaws }) => {
      network.on({ times: Infinity }, faults.redirect('http://evil.test/##[error]INJECTED/::error::INJECTED'))
      const result = await run()
      expect(await flaws(result, failed('E_PROTOCOL'))).toEqual([])
      expect(achievements(result)).toEqual([])
    }))

  it('that is a single line of megabytes', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const build = records(['x'.repeat(3_000_000), '\u{1f4a5}'.repeat(500_000)])
      plane.scriptNext(failing('m'.repeat(1_000_000)), { build })
      const result = await run()
      expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
      expect(result.stdout.length).toBeLessThan(200_000)
      expect(Buffer.byteLength(result.summary)).toBeGreaterThan(0)
      expect(result.summary).toBe(result.summary.toWellFormed())
    }))
})

describe.concurrent('secrets', () => {
  const split = (secret: string, by: string) => `${secret.slice(0, 5)}${by}${secret.slice(5)}`
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  const xml = (text: string) => text.replace(/[&<>"]/g, (char) => entities[char] ?? char)

  it('that a build prints stay out, in each way of printing them', () =>
    withScene({}, async ({ plane, run, secrets, flaws }) => {
      const lines = secrets.flatMap((secret) => [
        `key=${secret}`, `header: "${JSON.stringify(secret)}"`, encodeURIComponent(secret), xml(secret),
        `Authorization: Basic ${Buffer.from(secret).toString('base64')}`,
        split(secret, '\u001b[0m'), split(secret, '\u001b[31;1m'), `\u001b[1m${secret}\u001b[0m`, `\r${secret}\r`,
      ])
      for (const chunk of [lines.slice(0, 9), lines.slice(9)]) {
        plane.scriptNext(failing(chunk.join(' ')), { build: records(chunk) })
        const result = await run({ with: { 'deployment-name': `echo-${chunk.length}-${lines.indexOf(chunk[0] ?? '')}` } })
        expect(await flaws(result, failed('E_BUILD_FAILED'))).toEqual([])
      }
    }))

  it('of several lines are hidden line by line', () =>
    withScene({}, async ({ plane, run, flaws }) => {
      const parts = ['MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', 'BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj']
      const key = ['-----BEGIN PRIVATE KEY-----', ...parts, '-----END PRIVATE KEY-----'].join('\n')
      plane.scriptNext(failing(), { build: records([`line: ${parts[0]}`, key]) })
      const result = await run({ with: { secrets: `PRIVATE_KEY<<END\n${key}\nEND` } })
      expect(await flaws(result, failed('E_BUILD_FAILED'), parts)).toEqual([])
    }))

  it('of other variables that the control plane sends back stay out, also in errors', () =>
    withScene({ echoSecrets: true }, async ({ plane, network, run, flaws }) => {
      const others = [{ name: 'OLD_KEY', value: 'sk-old-key-of-somebody-else' }]
      const sourceConfig = { repo_url: 'https://github.com/acme/agents' }
      const deployment = plane.addDeployment({ name: 'echo-agent', secrets: others, sourceConfig, config: { repo_ref: 'main' } })
      const body = { id: deployment.id, secrets: others, latest_revision_id: 42, name: ['wrong'] }
      network.on({ method: 'PATCH', times: Infinity }, { kind: 'body', body })
      plane.scriptNext(failing())
      const result = await run()
      expect(await flaws(result, failed(result.outputs['error-code'] ?? 'none'), ['sk-old-key-of-somebody-else'])).toEqual([])
      expect(result.log).toContain('OLD_KEY')
    }))

  it.each([422, 400, 500])('in the words of a %i stay out', (status) =>
    withScene({}, async ({ plane, network, run, flaws }) => {
      const detail = `Invalid value ${AGENT_SECRET} from ${plane.apiKey} (${encodeURIComponent(AGENT_SECRET)})`
      const body = { detail, api_key: plane.apiKey, value: AGENT_SECRET }
      network.on({ method: 'POST', times: Infinity }, { kind: 'answer', status, body })
      const result = await run({ with: { timeout: '8s' } })
      const code = status === 500 ? 'E_UNAVAILABLE' : 'E_VALIDATION'
      expect(await flaws(result, failed(code))).toEqual([])
    }))

  it.each([
    ['the key', (apiKey: string) => apiKey],
    ['a variable of the agent', () => AGENT_SECRET],
    ['a variable, encoded', () => encodeURIComponent(AGENT_SECRET)],
  ])('in an address that the control plane gives stay out of the outputs: %s', (_, secretOf) =>
    withScene({ script: [['DEPLOYED']] }, async ({ plane, network, run, flaws }) => {
      const sourceConfig = { repo_url: 'https://github.com/acme/agents' }
      const { id, activeRevisionId } = plane.addDeployment({ name: 'echo-agent', sourceConfig, config: { repo_ref: 'main' } })
      const revisions = { latest_revision_id: activeRevisionId, active_revision_id: activeRevisionId }
      const body = { id, name: 'echo-agent', ...revisions, url: `https://x.test/?key=${secretOf(plane.apiKey)}` }
      network.on({ method: 'GET', path: /\/v2\/deployments\/[0-9a-f-]+$/, times: 1 }, faults.json(body))
      const result = await run({ with: { 'deployment-name': '', 'deployment-id': id } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
    }))

  it('are masked before anything else is said', () =>
    withScene({ script: [['DEPLOYED']] }, async ({ run, plane }) => {
      const result = await run()
      const [first] = result.stdout.split('\n')
      expect(first).toBe(`::add-mask::${plane.apiKey}`)
      expect(result.masks).toEqual(expect.arrayContaining([plane.apiKey, AGENT_SECRET]))
    }))
})

describe.concurrent('a runner that is broken', () => {
  const asFolder = (name: keyof FileCommandPaths) => async (files: FileCommandPaths) => {
    await rm(files[name])
    await mkdir(files[name])
  }
  const missing = (name: keyof FileCommandPaths) => (files: FileCommandPaths) => rm(files[name])

  const broken = (name: keyof FileCommandPaths) => [['a folder', asFolder(name)], ['missing', missing(name)]] as const

  it.each(broken('summary'))('a summary file that is %s costs the summary, not the truth', (_, tamper) =>
    withScene({}, async ({ plane, run, flaws }) => {
      plane.scriptNext(failing())
      const red = await run({ tamper })
      expect(await flaws(red, failed('E_BUILD_FAILED'))).toEqual([])
      plane.scriptNext([['DEPLOYED']])
      const green = await run({ tamper })
      expect(await flaws(green, DEPLOYED)).toEqual([])
    }))

  it('a summary file that is a folder is warned of', () =>
    withScene({ script: [['DEPLOYED']] }, async ({ run }) => {
      const result = await run({ tamper: asFolder('summary') })
      const warnings = result.annotations.filter(({ level }) => level === 'warning').map(({ message }) => message)
      expect(warnings.join('\n')).toContain('summary')
    }))

  it.each(broken('output'))('an output file that is %s is red, before anything is changed', (_, tamper) =>
    withScene({}, async ({ plane, run, flaws }) => {
      const result = await run({ tamper })
      expect(await flaws(result, { ...failed('E_INPUT', 'GITHUB_OUTPUT'), outputsLost: true })).toEqual([])
      expect(plane.requests).toEqual([])
    }))

  it.each(broken('state'))('a state file that is %s is red, and post does not take itself for main', (_, tamper) =>
    withScene({}, async ({ plane, run, flaws }) => {
      const result = await run({ tamper })
      expect(await flaws(result, failed('E_INPUT', 'GITHUB_STATE'))).toEqual([])
      expect(plane.requests).toEqual([])
      expect(plane.deployments).toEqual([])
    }))

  it('an event without a payload file is not a crash', () =>
    withScene({ script: [['DEPLOYED']] }, async ({ run, flaws }) => {
      const result = await run({ env: { GITHUB_EVENT_PATH: '/nonexistent/event.json' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
    }))
})
