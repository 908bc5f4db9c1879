import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { REPOSITORY_ROOT } from '../support/runner.ts'

const exec = promisify(execFile)

describe('a first deploy without GitHub, as the README has it', () => {
  let home: string

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'first-deploy-'))
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('makes the repository on a machine that knows nobody', async () => {
    const readme = await readFile(join(REPOSITORY_ROOT, 'README.md'), 'utf8')
    const [, commands = ''] = /^### A first deploy without GitHub$[^]*?^```sh\n([^]*?)\n\n/m.exec(readme) ?? []
    const agent = join(home, 'agent')
    // Some machines would make up a name and an address.
    const nobody = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'user.useConfigOnly', GIT_CONFIG_VALUE_0: 'true' }
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, GIT_CONFIG_NOSYSTEM: '1', ...nobody }
    await exec('bash', ['-e', '-c', commands.replaceAll('/tmp/agent', agent)], { cwd: REPOSITORY_ROOT, env })
    const { stdout } = await exec('git', ['-C', agent, 'log', '--format=%s', '--name-only', 'main'], { env })
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(['The agent', 'agent.mjs', 'langgraph.json']))
  })
})
