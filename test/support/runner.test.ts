import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertNoSecret } from './no-secret.ts'
import { runAction, type RunOptions, type RunResult } from './runner.ts'

const ACTION = `
name: probe
inputs:
  api-key: { description: d, required: true }
  two words: { description: d, default: spaced }
  github-token: { description: d, default: '\${{ github.token }}' }
  flag: { description: d, default: true }
outputs:
  result: { description: d }
runs: { using: node24, main: main.mjs, post: post.mjs }
`

/** A process that says that it is ready, and stays. */
const STAY = "console.log('ready'); setInterval(() => {}, 1000)"

/** Folders to remove at the end. */
const folders: string[] = []

async function run(main: string, options: Partial<RunOptions> & { postScript?: string } = {}): Promise<RunResult> {
  const { postScript, ...rest } = options
  const action = await mkdtemp(join(tmpdir(), 'probe-action-'))
  folders.push(action)
  await writeFile(join(action, 'action.yml'), ACTION)
  await writeFile(join(action, 'main.mjs'), `import { appendFileSync } from 'node:fs'\n${main}`)
  await writeFile(join(action, 'post.mjs'), postScript ?? '')
  const result = await runAction({ with: { 'api-key': 'k' }, action, timeoutMs: 15_000, ...rest })
  folders.push(result.folder)
  return result
}

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

describe.concurrent('environment', () => {
  it('names inputs as the runner does and fills in the defaults', async () => {
    const { stdout } = await run('console.log(JSON.stringify(process.env))', { with: { 'API-Key': 'given' }, token: 'ghs_tok' })
    const env = JSON.parse(stdout)
    expect(env).toMatchObject({
      'INPUT_API-KEY': 'given', INPUT_TWO_WORDS: 'spaced', 'INPUT_GITHUB-TOKEN': 'ghs_tok', INPUT_FLAG: 'true',
      GITHUB_ACTIONS: 'true', GITHUB_EVENT_NAME: 'push', GITHUB_REF_NAME: 'main', GITHUB_REF_TYPE: 'branch', RUNNER_OS: 'Linux',
    })
  })

  it('inherits nothing else', async () => {
    process.env['LEAKED_FROM_THE_TEST'] = 'yes'
    const { stdout } = await run('console.log(process.env.LEAKED_FROM_THE_TEST, process.versions.node.split(".")[0])')
    expect(stdout).toBe('undefined 24\n')
  })

  it('describes a tag and writes the payload', async () => {
    const event = { name: 'push', ref: 'refs/tags/v1.2.3', sha: 'a'.repeat(40), payload: { ref: 'refs/tags/v1.2.3' } }
    const script = `import { readFileSync } from 'node:fs'
      const { GITHUB_REF_NAME, GITHUB_REF_TYPE, GITHUB_EVENT_PATH } = process.env
      console.log(GITHUB_REF_NAME, GITHUB_REF_TYPE, JSON.parse(readFileSync(GITHUB_EVENT_PATH, 'utf8')).ref)`
    expect((await run(script, { event })).stdout).toBe('v1.2.3 tag refs/tags/v1.2.3\n')
  })

  it('warns of an input that action.yml does not have', async () => {
    const { annotations, conclusion } = await run('', { with: { typo: 'x' } })
    expect(annotations).toMatchObject([{ level: 'warning', message: "Unexpected input(s) 'typo'" }])
    expect(conclusion).toBe('success')
  })

  it('works in the workspace', async () => {
    const workspace = await mkdtemp(join(tmpdir(), 'probe-workspace-'))
    folders.push(workspace)
    const { stdout } = await run('console.log(process.cwd() === process.env.GITHUB_WORKSPACE, process.cwd())', { cwd: workspace })
    expect(stdout).toBe(`true ${workspace}\n`)
  })
})

describe.concurrent('command files', () => {
  it('gives outputs and hands the state to post', async () => {
    const result = await run(
      `appendFileSync(process.env.GITHUB_OUTPUT, 'one=1\\nmany<<END\\na\\nb=c\\nEND\\n')
       appendFileSync(process.env.GITHUB_STATE, 'id=42\\n')`,
      { postScript: 'console.log(`post has ${process.env.STATE_id}`)' },
    )
    expect(result.outputs).toEqual({ one: '1', many: 'a\nb=c' })
    expect(result.post?.log).toBe('post has 42')
  })

  it('keeps what was written before main was killed', async () => {
    const result = await run(
      `appendFileSync(process.env.GITHUB_STATE, 'id=42\\n'); console.log('ready'); setInterval(() => {}, 1000)`,
      {
        signals: [{ signal: 'SIGKILL', when: ({ stdout }) => stdout.includes('ready') }],
        postScript: 'console.log(process.env.STATE_id)',
      },
    )
    expect(result).toMatchObject({ exitCode: 137, signal: 'SIGKILL', conclusion: 'failure' })
    expect(result.post?.stdout).toBe('42\n')
  })

  it('fails the step for a file that cannot be read', async () => {
    const unended = await run(`appendFileSync(process.env.GITHUB_OUTPUT, 'good=1\\nbad<<END\\nvalue')`)
    expect(unended).toMatchObject({ exitCode: 0, conclusion: 'failure', outputs: { good: '1' } })
    expect(unended.annotations.map(({ message }) => message)).toContain("Unable to process file command 'output' successfully.")
    const folder = await run('', {
      tamper: async ({ output }) => {
        await rm(output)
        await mkdir(output)
      },
    })
    expect(folder.conclusion).toBe('failure')
  })

  it('masks the summary and drops one above 1 MiB without failing the step', async () => {
    const masked = await run(
      `console.log('::add-mask::hunter2'); appendFileSync(process.env.GITHUB_STEP_SUMMARY, '# pass hunter2\\n')`,
    )
    expect(masked.summary).toBe('# pass ***\n')
    const large = await run(`appendFileSync(process.env.GITHUB_STEP_SUMMARY, 'x'.repeat(1024 * 1024 + 1))`)
    expect(large).toMatchObject({ summary: '', conclusion: 'success' })
    expect(large.annotations).toMatchObject([{ level: 'error', message: expect.stringContaining('upload aborted') }])
  })
})

describe.concurrent('commands in the output', () => {
  const say = (...lines: string[]) => `process.stdout.write(${JSON.stringify(lines.map((line) => `${line}\n`).join(''))})`

  it('makes annotations with title and message, masked and cut', async () => {
    const result = await run(say('::add-mask::hunter2', `::error title=E_X%3A a%2Cb::line 1%0Aline hunter2 ${'y'.repeat(5000)}`))
    expect(result.annotations).toMatchObject([{ level: 'error', title: 'E_X: a,b', shown: true }])
    expect(result.annotations[0]?.message).toMatch(/^line 1\nline \*\*\* y+$/)
    expect(result.annotations[0]?.message).toHaveLength(4096)
  })

  it('shows ten annotations of a level', async () => {
    const result = await run(say(...Array.from({ length: 12 }, (_, index) => `::warning::w${index}`)))
    expect(result.annotations.filter(({ shown }) => shown)).toHaveLength(10)
    expect(result.log).toContain('Warning: w11')
  })

  it('reads standard error, legacy commands in the middle of a line, and a line after a bare CR', async () => {
    const lines = say('harmless ##[error]legacy', 'progress\r::notice::after CR')
    const result = await run(`${lines}; console.error('  ::warning::from stderr')`)
    expect(result.annotations.map(({ level, message }) => `${level} ${message}`).toSorted()).toEqual([
      'error legacy', 'notice after CR', 'warning from stderr',
    ])
    expect(result.commandsIssued).toHaveLength(3)
  })

  it('obeys stop-commands until its token, and says when it was never taken back', async () => {
    const stopped = ['::stop-commands::tok-123456', '::error::inert', 'x ##[warning]inert', '::tok-123456::']
    const result = await run(say(...stopped, '::error::live'))
    expect(result.annotations).toMatchObject([{ message: 'live' }])
    expect(result.commandsIssued.map(({ name }) => name)).toEqual(['stop-commands', 'error'])
    expect(result.commandsStopped).toBe(false)
    expect((await run(say('::stop-commands::tok-123456'))).commandsStopped).toBe(true)
  })

  it('leaves other double colons alone', async () => {
    const result = await run(say('::unknown::x', 'text ::error::no', 'std::vector<int>::size'))
    expect(result.annotations).toEqual([])
    expect(result.log).toBe('::unknown::x\ntext ::error::no\nstd::vector<int>::size')
  })

  it('hides a secret and its encodings from then on, line by line', async () => {
    const secret = 's3cr3t "q" &'
    const encoded = Buffer.from(`user:${secret}`).toString('base64')
    const lines = [`before ${secret}`, `::add-mask::${secret}`, `after ${secret} ${encoded}`]
    const result = await run(say(...lines, '::add-mask::one%0Atwo', 'two one'))
    expect(result.log).toContain(`before ${secret}\nafter *** `)
    expect(result.log).not.toContain(Buffer.from(secret).toString('base64').slice(0, 12))
    expect(result.log).toContain('*** ***')
    expect(result.masks).toEqual(expect.arrayContaining([secret, 'one', 'two']))
  })

  it('remembers masks in post, and hides what the runner knew from the start', async () => {
    const result = await run(say('::add-mask::hunter2', 'known-value'), {
      knownSecrets: ['known-value'], postScript: "console.log('again hunter2')",
    })
    expect(result.log).toBe('***')
    expect(result.post?.log).toBe('again ***')
  })

  it('fails the step for set-env, and takes legacy outputs', async () => {
    expect(await run(say('::set-env name=A::b'))).toMatchObject({ exitCode: 0, conclusion: 'failure' })
    expect(await run(say('::set-output name=result::x'))).toMatchObject({ conclusion: 'success', outputs: { result: 'x' } })
  })

  it('folds groups and prints debug only when asked', async () => {
    const lines = ['::group::Build', 'step 1', '::endgroup::', 'after', '::debug::detail']
    const result = await run(say(...lines))
    expect(result.groups).toEqual([{ title: 'Build', lines: ['step 1'] }])
    expect(result.log).toBe('▼ Build\n    step 1\nafter')
    expect((await run(say(...lines), { debug: true })).log).toContain('##[debug]detail')
  })
})

describe.concurrent('cancellation', () => {
  const ready: RunOptions['cancelWhen'] = ({ stdout }) => stdout.includes('ready')

  it('interrupts, and runs post', async () => {
    const script = `process.on('SIGINT', () => process.exit(1)); ${STAY}`
    const result = await run(script, { cancelWhen: ready })
    expect(result).toMatchObject({ conclusion: 'cancelled', exitCode: 1, signalsSent: ['SIGINT'] })
    expect(result.endedAfterSignalMs).toBeLessThan(2000)
    expect(result.post).not.toBeNull()
  })

  it('sends SIGTERM after 7.5 s', { timeout: 20_000 }, async () => {
    const script = `process.on('SIGINT', () => {}); process.on('SIGTERM', () => process.exit(1)); ${STAY}`
    const result = await run(script, { cancelWhen: ready })
    expect(result.signalsSent).toEqual(['SIGINT', 'SIGTERM'])
    expect(result.endedAfterSignalMs).toBeGreaterThan(7400)
    expect(result.endedAfterSignalMs).toBeLessThan(9500)
  })

  it('kills the whole tree after 2.5 s more', { timeout: 30_000 }, async () => {
    const beat = `setInterval(() => require('node:fs').appendFileSync(process.env.HOME + '/beat', '.'), 20)`
    const script = `import { spawn } from 'node:child_process'
      for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
      spawn(process.execPath, ['-e', ${JSON.stringify(beat)}], { stdio: 'inherit' })
      ${STAY}`
    const result = await run(script, { cancelWhen: ready, timeoutMs: 25_000 })
    expect(result).toMatchObject({ signalsSent: ['SIGINT', 'SIGTERM', 'SIGKILL'], exitCode: 137, timedOut: false })
    const beats = async () => (await stat(join(result.folder, 'home', 'beat'))).size
    const before = await beats()
    await delay(200)
    expect(before).toBeGreaterThan(100)
    expect(await beats()).toBe(before)
  })

  it('sends signals in the order of the test', async () => {
    const script = `let n = 0; process.on('SIGTERM', () => { console.log('got', ++n); if (n === 2) process.exit(3) })
      ${STAY}`
    const result = await run(script, {
      signals: [
        { signal: 'SIGTERM', when: ready },
        { signal: 'SIGTERM', when: ({ stdout }) => stdout.includes('got 1'), afterMs: 50 },
      ],
    })
    expect(result).toMatchObject({ exitCode: 3, conclusion: 'failure', signalsSent: ['SIGTERM', 'SIGTERM'] })
  })

  it('says that a step hung', async () => {
    expect(await run('setInterval(() => {}, 1000)', { timeoutMs: 300 })).toMatchObject({ timedOut: true, conclusion: 'failure' })
  })
})

describe.concurrent('assertNoSecret', () => {
  let clean: RunResult
  beforeAll(async () => {
    clean = await run("console.log('::add-mask::hunter2-hunter2')")
  })

  it('passes when only the mask command had it', async () => {
    await assertNoSecret(clean, ['hunter2-hunter2'])
  })

  const leaks: [place: string, script: string, options?: Partial<RunOptions> & { postScript?: string }][] = [
    ['main stdout', "console.log('::add-mask::hunter2-hunter2'); console.log('key hunter2-hunter2')"],
    ['main stderr', "console.error('hunter2-hunter2')"],
    ['main stdout', "console.log(Buffer.from('hunter2-hunter2').toString('base64'))"],
    ['main outputs', "appendFileSync(process.env.GITHUB_OUTPUT, 'a=hunter2-hunter2\\n')"],
    ['main state', "appendFileSync(process.env.GITHUB_STATE, 'a=hunter2-hunter2\\n')"],
    ['main summary', "appendFileSync(process.env.GITHUB_STEP_SUMMARY, 'hunter2-hunter2')"],
    ['main summary as it is read', "appendFileSync(process.env.GITHUB_STEP_SUMMARY, 'hunter2&#45;hunter2')"],
    ['file home/.cache', "appendFileSync(process.env.HOME + '/.cache', 'hunter2-hunter2')"],
    ['post stdout', '', { postScript: "console.log('hunter2-hunter2')" }],
  ]
  it.each(leaks)('finds it in %s', async (place, script, options) => {
    const result = await run(script, options)
    await expect(assertNoSecret(result, ['hunter2-hunter2'])).rejects.toThrow(`in ${place}`)
  })
})
