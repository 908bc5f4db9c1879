import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkoutGit, resolveGitHead } from '../../../../src/platform/control-plane/sources/git.ts'
import { withSizeLimit } from '../../../../src/platform/control-plane/sources/size-limit.ts'
import { BuildFailure } from '../../../../src/platform/control-plane/sources/source.ts'
import { createGitRepository, type GitRepository } from '../../support/git-repository.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { processesWith } from '../../support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'git-source-'))
const never = new AbortController().signal
let repository: GitRepository
const commits: Record<string, string> = {}
let serial = 0

const fresh = () => path.join(folder, `checkout-${(serial += 1)}`)

interface Options {
  readonly allowLocal?: boolean
  readonly token?: string
  readonly commit?: string | undefined
  readonly maxBytes?: number
}

function checkout(ref: string, repoUrl = repository.directory, options: Options = {}) {
  const directory = fresh()
  const log = memoryLog()
  const { token, commit, ...rest } = options
  return {
    directory,
    log,
    done: checkoutGit({ repoUrl, ref, token, commit }, { directory, log, signal: never, ...rest }),
  }
}

beforeAll(() => {
  repository = createGitRepository(path.join(folder, 'origin'))
  commits.first = repository.commit({ 'agent.txt': 'one' })
  repository.git('tag', 'v1')
  repository.git('tag', '-a', 'v1-annotated', '-m', 'release')
  // No ref ends in it.
  commits.inner = repository.commit({ 'agent.txt': 'inner' })
  // A branch of the tag's name: the two must never be confused.
  commits.second = repository.commit({ 'agent.txt': 'two' })
  repository.git('branch', 'v1')
  commits.main = repository.commit({ 'agent.txt': 'three' })
  repository.git('branch', 'feature/a.b-c_d+e')
  repository.git('branch', 'größe')
  repository.git('tag', 'blob-tag', 'HEAD:agent.txt')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('checkout', () => {
  test.each([
    ['main', () => commits.main, 'three'],
    ['refs/tags/v1', () => commits.first, 'one'],
    ['refs/tags/v1-annotated', () => commits.first, 'one'],
    ['v1', () => commits.second, 'two'],
    ['feature/a.b-c_d+e', () => commits.main, 'three'],
    ['größe', () => commits.main, 'three'],
  ])('takes exactly %s', async (ref, sha, content) => {
    const { directory, done } = checkout(ref)
    expect(await done).toEqual({ commitSha: sha() })
    expect(readFileSync(path.join(directory, 'agent.txt'), 'utf8')).toBe(content)
    expect(await resolveGitHead({ repoUrl: repository.directory, ref }, { signal: never })).toBe(sha())
  })

  test('fetches one commit and no history', async () => {
    const { directory, done } = checkout('main', `file://${repository.directory}`)
    await done
    expect(execFileSync('git', ['rev-list', '--count', 'HEAD'], { cwd: directory, encoding: 'utf8' }).trim()).toBe('1')
  })

  test.each([
    ['nosuch', 'The branch refs/heads/nosuch does not exist'],
    ['refs/tags/nosuch', 'The tag refs/tags/nosuch does not exist'],
    ['first', 'The branch refs/heads/first does not exist'],
    ['refs/tags/blob-tag', 'does not name a commit'],
    ['--upload-pack=touch pwned', 'is not a ref'],
    ['-main', 'is not a ref'],
    ['refs/heads/main', 'is not a ref'],
    ['main:refs/heads/evil', 'is not a ref'],
    ['+main', 'The branch refs/heads/+main does not exist'],
    ['ma*', 'is not a ref'],
    ['a..b', 'is not a ref'],
    ['', 'is not a ref'],
  ])('refuses the ref %j with a sentence', async (ref, sentence) => {
    const { done } = checkout(ref)
    const failure = await done.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(BuildFailure)
    expect((failure as Error).message).toContain(sentence)
  })

  test.each([
    ['ext::sh -c "touch pwned"', 'cannot be used'],
    ['ext::sh', 'ext:// is not supported'],
    ['--upload-pack=x', 'cannot be used'],
    ['ssh://git@example.com/a/b', 'ssh:// is not supported'],
    ['git://example.com/a/b', 'git:// is not supported'],
    ['git@example.com:a/b', 'it is not an address'],
    ['relative/path', 'it is not an address'],
    ['file://example.com/a', 'a file address has no host'],
  ])('refuses the address %s', async (repoUrl, sentence) => {
    await expect(checkout('main', repoUrl).done).rejects.toThrow(sentence)
  })

  test('a folder of this machine is refused where the platform does not allow it', async () => {
    for (const repoUrl of [repository.directory, `file://${repository.directory}`]) {
      await expect(checkout('main', repoUrl, { allowLocal: false }).done).rejects.toThrow('does not read repositories of its own machine')
    }
  })

  test('a repository that is not there, and one that cannot be reached', async () => {
    const missing = checkout('main', path.join(folder, 'nothing'))
    await expect(missing.done).rejects.toThrow('There is no git repository at')
    expect(missing.log.text()).toContain('fatal:')
    await expect(checkout('main', 'http://127.0.0.1:1/a/b').done).rejects.toThrow('could not be reached')
  })

  test('hooks and filters of the repository, and of the user who runs the platform, do not run', async () => {
    const marker = path.join(folder, 'pwned')
    const hooks = createGitRepository(path.join(folder, 'hooks')).directory
    writeFileSync(path.join(hooks, 'post-checkout'), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
    const config = path.join(folder, 'user.gitconfig')
    writeFileSync(config, `[core]\n\thooksPath = ${hooks}\n[filter "evil"]\n\tsmudge = touch ${marker}; cat\n`)
    const evil = createGitRepository(path.join(folder, 'evil'))
    evil.commit({ '.gitattributes': '* filter=evil', 'a.txt': 'a' })
    vi.stubEnv('GIT_CONFIG_GLOBAL', config)
    const { directory, done } = checkout('main', evil.directory)
    await done
    vi.unstubAllEnvs()
    expect(existsSync(path.join(directory, 'a.txt'))).toBe(true)
    expect(existsSync(marker)).toBe(false)
  })

  test('submodules come along, relative addresses included', async () => {
    const library = createGitRepository(path.join(folder, 'library'))
    library.commit({ 'lib.txt': 'old' })
    const pinned = library.commit({ 'lib.txt': 'pinned' })
    library.commit({ 'lib.txt': 'newer' })
    const parent = createGitRepository(path.join(folder, 'parent'))
    parent.commit({ 'a.txt': 'a' })
    parent.git('submodule', '--quiet', 'add', '../library', 'vendor/library')
    parent.git('-C', 'vendor/library', 'checkout', '--quiet', pinned)
    parent.commit({})
    const { directory, done } = checkout('main', parent.directory)
    await done
    expect(readFileSync(path.join(directory, 'vendor/library/lib.txt'), 'utf8')).toBe('pinned')
  })

  test('a submodule with a forbidden address fails the build', async () => {
    const parent = createGitRepository(path.join(folder, 'ext-parent'))
    parent.commit({ '.gitmodules': '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% pwned\n' })
    parent.git('update-index', '--add', '--cacheinfo', `160000,${commits.main},x`)
    parent.git('commit', '--quiet', '-m', 'submodule')
    const { done } = checkout('main', parent.directory)
    await expect(done).rejects.toThrow("A submodule could not be fetched (fatal: transport 'ext' not allowed)")
  })
})

describe('the default branch', () => {
  test('is taken for HEAD, whatever its name, and told', async () => {
    const other = createGitRepository(path.join(folder, 'default'))
    other.commit({ 'a.txt': 'main' })
    other.git('checkout', '--quiet', '-b', 'trunk/stable')
    const head = other.commit({ 'a.txt': 'trunk' })
    // A branch that is called HEAD is another one.
    other.git('update-ref', 'refs/heads/HEAD', 'refs/heads/main')
    const { directory, log, done } = checkout('HEAD', other.directory)
    expect(await done).toEqual({ commitSha: head })
    expect(readFileSync(path.join(directory, 'a.txt'), 'utf8')).toBe('trunk')
    expect(log.text()).toContain('The default branch is refs/heads/trunk/stable')
    expect(await resolveGitHead({ repoUrl: other.directory, ref: 'HEAD' }, { signal: never })).toBe(head)
  })

  test('may be detached', async () => {
    const other = createGitRepository(path.join(folder, 'detached'))
    const head = other.commit({ 'a.txt': 'a' })
    other.git('checkout', '--quiet', '--detach')
    const { log, done } = checkout('HEAD', other.directory)
    expect(await done).toEqual({ commitSha: head })
    expect(log.text()).toContain('HEAD is detached at the remote')
  })

  test('of an empty repository is none', async () => {
    const empty = createGitRepository(path.join(folder, 'empty')).directory
    await expect(checkout('HEAD', empty).done).rejects.toThrow('has no default branch with a commit')
    await expect(resolveGitHead({ repoUrl: empty, ref: 'HEAD' }, { signal: never })).rejects.toThrow('has no default branch')
  })
})

describe('one commit', () => {
  test('is fetched alone, wherever its branch is by now', async () => {
    const { directory, done } = checkout('main', `file://${repository.directory}`, { commit: commits.inner })
    expect(await done).toEqual({ commitSha: commits.inner })
    expect(readFileSync(path.join(directory, 'agent.txt'), 'utf8')).toBe('inner')
    expect(execFileSync('git', ['rev-list', '--count', 'HEAD'], { cwd: directory, encoding: 'utf8' }).trim()).toBe('1')
  })

  test('that is no longer there', async () => {
    const missing = checkout('main', repository.directory, { commit: 'f'.repeat(40) })
    await expect(missing.done).rejects.toThrow(`Commit ${'f'.repeat(40)} is no longer in ${repository.directory}`)
    const both = checkout('nosuch', repository.directory, { commit: 'f'.repeat(40) })
    await expect(both.done).rejects.toThrow('is no longer in')
  })

  test.each(['main', 'abc1234', '--upload-pack=x', 'F'.repeat(40), 'refs/heads/main'])('is never %j', async (commit) => {
    await expect(checkout('main', repository.directory, { commit }).done).rejects.toThrow('is not the full SHA of a commit')
  })
})

describe('the size of a checkout', () => {
  test('is bounded', async () => {
    const large = createGitRepository(path.join(folder, 'large'))
    large.commit({ 'noise.txt': randomBytes(1_000_000).toString('base64') })
    await expect(checkout('main', large.directory, { maxBytes: 1024 ** 2 }).done).rejects.toThrow('larger than this platform allows (1 MiB)')
    await checkout('main', large.directory, { maxBytes: 8 * 1024 ** 2 }).done
  })

  test('is looked at while it grows', async () => {
    const directory = fresh()
    mkdirSync(path.join(directory, 'deep'), { recursive: true })
    let written = 0
    const endless = async (signal: AbortSignal) => {
      while (written < 50_000_000) {
        signal.throwIfAborted()
        writeFileSync(path.join(directory, 'deep', String((written += 100_000))), randomBytes(100_000))
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    const failure = await withSizeLimit({ directory, maxBytes: 1_000_000, signal: never, pollMs: 10 }, endless).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(BuildFailure)
    expect(written).toBeLessThan(20_000_000)
  })

  test('a full disk is told as such', async () => {
    const bin = path.join(folder, 'bin')
    mkdirSync(bin)
    const words = 'fatal: write error: No space left on device'
    writeFileSync(path.join(bin, 'git'), `#!/bin/sh\ncase "$1" in fetch) echo "${words}" >&2; exit 128;; esac\n`, { mode: 0o755 })
    vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`)
    await expect(checkout('main').done.finally(() => vi.unstubAllEnvs())).rejects.toThrow("The disk of the platform's machine is full")
  })
})

describe('over http', () => {
  let server: Server
  let origin: string
  const seen: { url: string; authorization: string | undefined }[] = []
  let wanted: string | null = null
  let protocol = true

  // Smart HTTP through git's own program, as every git server does it.
  beforeAll(async () => {
    const bare = path.join(folder, 'served', 'team', 'repo.git')
    execFileSync('git', ['clone', '--quiet', '--bare', repository.directory, bare])
    server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://x')
      seen.push({ url: url.pathname, authorization: request.headers.authorization })
      if (wanted !== null && request.headers.authorization !== wanted) {
        response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end()
        return
      }
      const backend = spawn('git', ['http-backend'], {
        env: {
          ...process.env,
          GIT_PROJECT_ROOT: path.join(folder, 'served'),
          GIT_HTTP_EXPORT_ALL: '1',
          PATH_INFO: url.pathname,
          QUERY_STRING: url.search.slice(1),
          REQUEST_METHOD: request.method,
          CONTENT_TYPE: request.headers['content-type'] ?? '',
          HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
          GIT_PROTOCOL: protocol ? String(request.headers['git-protocol'] ?? '') : '',
        },
      })
      request.pipe(backend.stdin)
      const chunks: Buffer[] = []
      backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
      backend.on('close', () => {
        const output = Buffer.concat(chunks)
        const end = output.indexOf('\r\n\r\n')
        for (const line of output.subarray(0, end).toString().split('\r\n')) {
          const [name = '', value = ''] = line.split(': ')
          if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
          else response.setHeader(name, value)
        }
        response.end(output.subarray(end + 4))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

  test('a public repository is read without a token', async () => {
    wanted = null
    seen.length = 0
    expect(await checkout('main', `${origin}/team/repo.git`, { allowLocal: false }).done).toEqual({ commitSha: commits.main })
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.filter((request) => request.authorization !== undefined)).toEqual([])
  })

  test('a private one with its token, which appears nowhere else', async () => {
    wanted = basic('x-access-token:s3cret-token')
    const source = { repoUrl: `${origin}/team/repo.git`, ref: 'refs/tags/v1-annotated', token: 's3cret-token' }
    expect(await resolveGitHead(source, { signal: never })).toBe(commits.first)
    const { directory, log, done } = checkout(source.ref, source.repoUrl, { token: source.token })
    await done
    const found = spawnSync('grep', ['-r', '-l', '-e', 's3cret-token', '-e', wanted.slice(6), directory], { encoding: 'utf8' })
    expect(found).toMatchObject({ status: 1, stdout: '' })
    expect(log.text()).not.toContain('s3cret-token')
  })

  test('credentials in the address are used and never shown', async () => {
    wanted = basic('alice:pa:ss')
    const { directory, log, done } = checkout('main', `${origin.replace('//', '//alice:pa%3Ass@')}/team/repo.git`)
    await done
    expect(readFileSync(path.join(directory, '.git/config'), 'utf8')).not.toContain('alice')
    expect(log.text()).not.toContain('pa%3Ass')
  })

  test('a commit comes out of the history where the server gives only what refs end in', async () => {
    wanted = null
    protocol = false
    const repoUrl = `${origin}/team/repo.git`
    const { directory, log, done } = checkout('main', repoUrl, { commit: commits.inner })
    expect(await done).toEqual({ commitSha: commits.inner })
    expect(readFileSync(path.join(directory, 'agent.txt'), 'utf8')).toBe('inner')
    expect(log.text()).toContain('looking for it in the history of refs/heads/main')
    await expect(checkout('main', repoUrl, { commit: 'f'.repeat(40) }).done).rejects.toThrow('is no longer in')
    protocol = true
    wanted = basic('x-access-token:right')
    await expect(checkout('main', repoUrl, { commit: commits.inner }).done).rejects.toThrow('no token was given')
  })

  test('no token, and a wrong one, are told apart', async () => {
    wanted = basic('x-access-token:right')
    await expect(checkout('main', `${origin}/team/repo.git`).done).rejects.toThrow('no token was given')
    await expect(checkout('main', `${origin}/team/repo.git`, { token: 'wrong' }).done).rejects.toThrow('does not open it')
    wanted = null
    await expect(checkout('main', `${origin}/team/other.git`).done).rejects.toThrow('There is no git repository')
  })

  test('a repository from elsewhere cannot reach into this machine by a submodule', async () => {
    wanted = null
    const parent = createGitRepository(path.join(folder, 'reaching'))
    parent.commit({ '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = file://${repository.directory}\n` })
    parent.git('update-index', '--add', '--cacheinfo', `160000,${commits.main},x`)
    parent.git('commit', '--quiet', '-m', 'submodule')
    execFileSync('git', ['clone', '--quiet', '--bare', parent.directory, path.join(folder, 'served', 'reaching.git')])
    await expect(checkout('main', `${origin}/reaching.git`).done).rejects.toThrow("transport 'file' not allowed")
  })
})

test('an abort kills git and gives the reason', async () => {
  // A server that accepts and never answers.
  const server = createServer(() => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const port = (server.address() as AddressInfo).port
  const controller = new AbortController()
  const directory = fresh()
  const done = checkoutGit(
    { repoUrl: `http://127.0.0.1:${port}/a`, ref: 'main' },
    { directory, log: memoryLog(), signal: controller.signal },
  )
  setTimeout(() => controller.abort(new Error('interrupted')), 300)
  await expect(done).rejects.toThrow('interrupted')
  expect(processesWith(`127.0.0.1:${port}`)).toEqual([])
  server.closeAllConnections()
  server.close()
})

test('links in a repository are kept as links', async () => {
  const linked = createGitRepository(path.join(folder, 'linked'))
  linked.write({ 'a.txt': 'a' })
  writeFileSync(path.join(folder, 'outside.json'), '{}')
  symlinkSync(path.join(folder, 'outside.json'), path.join(linked.directory, 'langgraph.json'))
  linked.commit({})
  const { done } = checkout('main', linked.directory)
  expect(await done).toEqual({ commitSha: linked.git('rev-parse', 'HEAD') })
})
