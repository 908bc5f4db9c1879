import { mkdir, stat } from 'node:fs/promises'
import path from 'node:path'
import type { BuildLog } from '../build-log.ts'
import { DEFAULT_BRANCH, failure, fullRef, git, missingRef, ownWords } from './git-command.ts'
import { parseRemote, type Remote } from './repository-url.ts'
import type { StepResult } from './run-step.ts'
import { CHECKOUT_MAX_BYTES, withSizeLimit } from './size-limit.ts'
import { BuildFailure, type GitSource } from './source.ts'

export type { GitSource } from './source.ts'

export interface GitOptions {
  readonly signal: AbortSignal
  /** Whether `file://` and paths of this machine may be read. Default true. */
  readonly allowLocal?: boolean | undefined
}

export interface CheckoutOptions extends GitOptions {
  /** Empty, or not there yet. */
  readonly directory: string
  readonly log: BuildLog
  /** What the checkout may take on disk. Default `CHECKOUT_MAX_BYTES`. */
  readonly maxBytes?: number | undefined
}

const SILENT: BuildLog = { write: () => undefined }

/**
 * The commit that the ref names at its remote; an annotated tag is peeled to its commit. The source's `commit` plays no part.
 * @throws {BuildFailure} when there is no such ref, or the repository cannot be read.
 */
export async function resolveGitHead(source: GitSource, { signal, allowLocal = true }: GitOptions): Promise<string> {
  const remote = parseRemote(source, { allowLocal })
  const { sha } = await askRemote(source, { remote, signal })
  return sha
}

/**
 * Clones exactly one commit: no history, no hooks, no other branches; submodules included. With the source's `commit` it is that one,
 * wherever the ref is by now.
 * @throws {BuildFailure} when there is no such ref or commit, when the repository or a submodule cannot be read, or is too large.
 */
export async function checkoutGit(
  source: GitSource,
  { directory, log, signal, allowLocal = true, maxBytes = CHECKOUT_MAX_BYTES }: CheckoutOptions,
): Promise<{ commitSha: string }> {
  const remote = parseRemote(source, { allowLocal })
  const ref = fullRef(source.ref)
  const { commit } = source
  if (commit !== undefined && !SHA.test(commit)) throw new BuildFailure(`'${commit}' is not the full SHA of a commit.`)
  await mkdir(directory, { recursive: true })
  return withSizeLimit({ directory, maxBytes, signal }, async (limited) => {
    const run: Run = (...args) => git({ args, remote, cwd: directory }, { log, signal: limited })
    const must: Run = async (...args) => {
      const result = await run(...args)
      if (!result.ok) throw failure(result, source, remote)
      return result
    }
    log.write('INFO', `Cloning ${remote.url} at ${commit === undefined ? ref : `commit ${commit}`}`)
    // No template: it could bring hooks.
    await must('init', '--quiet', '--template=', '--initial-branch=checkout', '--', '.')
    // Relative addresses of submodules start from here.
    await must('remote', 'add', '--', 'origin', remote.url)
    const work = { source, remote, log, signal: limited, run, must }
    const commitSha = commit === undefined ? await fetchRef(ref, work) : await fetchCommit(commit, ref, work)
    await must('checkout', '--quiet', '--force', '--detach', commitSha)
    if (await exists(path.join(directory, '.gitmodules'))) await updateSubmodules(run, log)
    log.write('INFO', `Checked out commit ${commitSha}`)
    return { commitSha }
  })
}

/** SHA-1, or SHA-256 of repositories that use it. */
const SHA = /^([0-9a-f]{40}|[0-9a-f]{64})$/

type Run = (...args: string[]) => Promise<StepResult>

interface Work {
  readonly source: GitSource
  readonly remote: Remote
  readonly log: BuildLog
  readonly signal: AbortSignal
  readonly run: Run
  /** Throws when git fails. */
  readonly must: Run
}

const FETCH = ['fetch', '--no-tags', '--no-recurse-submodules'] as const

/** Fetches what the ref names now, and gives its commit. */
async function fetchRef(ref: string, work: Work): Promise<string> {
  const { source, remote, log, signal, run, must } = work
  const { branch } = ref === DEFAULT_BRANCH ? await askRemote(source, { remote, signal }) : { branch: undefined }
  if (ref === DEFAULT_BRANCH) log.write('INFO', `The default branch is ${branch ?? 'none: HEAD is detached at the remote'}`)
  const wanted = branch ?? ref
  const fetched = await run(...FETCH, '--depth=1', '--', 'origin', wanted)
  if (!fetched.ok) {
    if (!isDumb(fetched)) throw failure(fetched, source, remote)
    await must(...FETCH, '--', 'origin', wanted)
  }
  const sha = await commitOf('FETCH_HEAD', run)
  if (sha === null) throw new BuildFailure(`${wanted} of ${remote.url} does not name a commit: choose a branch, or a tag of a commit.`)
  return sha
}

/** Fetches one commit by its SHA; where the server gives only what a ref ends in, out of the ref's history. */
async function fetchCommit(commit: string, ref: string, { source, remote, log, run }: Work): Promise<string> {
  const direct = await run(...FETCH, '--depth=1', '--', 'origin', commit)
  if (!direct.ok) {
    if (!isRefused(direct)) throw failure(direct, source, remote)
    log.write('INFO', `The server does not give the commit alone: looking for it in the history of ${ref}`)
    const history = await run(...FETCH, '--', 'origin', ref)
    // The ref may be gone as well: then the commit is what is missed.
    if (!history.ok && !isMissingRef(history)) throw failure(history, source, remote)
  }
  if ((await commitOf(commit, run)) !== null) return commit
  throw new BuildFailure(
    `Commit ${commit} is no longer in ${remote.url}: the history of ${ref} was rewritten, or ${ref} was removed. Make a new revision.`,
  )
}

async function commitOf(name: string, run: Run): Promise<string | null> {
  const resolved = await run('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`)
  return resolved.ok ? resolved.stdout.trim() : null
}

const isDumb = ({ tail }: StepResult) => /dumb http transport does not support shallow/i.test(tail.join('\n'))

const isMissingRef = ({ tail }: StepResult) => /couldn't find remote ref/i.test(tail.join('\n'))

/** The server answers, and does not give a commit for its SHA: it never does, or there is no such commit. */
function isRefused(result: StepResult): boolean {
  const output = result.tail.join('\n')
  return isDumb(result) || isMissingRef(result) || /not our ref|unadvertised object|unexpected disconnect|hung up/i.test(output)
}

/** What the remote says about the source's ref: its commit and, for `HEAD`, the branch that it stands for (undefined when detached). */
async function askRemote(
  source: GitSource,
  { remote, signal }: { remote: Remote; signal: AbortSignal },
): Promise<{ sha: string; branch: string | undefined }> {
  const ref = fullRef(source.ref)
  const patterns = ref === DEFAULT_BRANCH ? ['--symref', '--', remote.url, ref] : ['--', remote.url, ref, `${ref}^{}`]
  const result = await git({ args: ['ls-remote', ...patterns], remote }, { log: SILENT, signal })
  if (!result.ok) throw failure(result, source, remote)
  // A pattern also matches `refs/remotes/x/refs/heads/main`: only the exact names count.
  const lines = result.stdout.split('\n').map((line) => line.split('\t'))
  const values = lines.flatMap(([value = '', name]) => (name === ref || name === `${ref}^{}` ? [{ value, peeled: name !== ref }] : []))
  const sha = values.findLast(({ value, peeled }) => peeled || SHA.test(value))?.value
  if (sha === undefined) throw missingRef(ref, remote)
  const symref = values.find(({ value }) => value.startsWith('ref: refs/heads/'))?.value
  return { sha, branch: symref?.slice('ref: '.length) }
}

async function updateSubmodules(run: Run, log: BuildLog): Promise<void> {
  log.write('INFO', 'Fetching submodules')
  const update = ['submodule', 'update', '--init', '--recursive', '--force']
  const shallow = await run(...update, '--recommend-shallow', '--depth=1')
  if (shallow.ok) return
  // A server may refuse a commit that no branch ends in: then the branch's history is needed to reach it.
  const whole = await run(...update, '--no-recommend-shallow')
  if (whole.ok) return
  throw new BuildFailure(
    `A submodule could not be fetched (${ownWords(whole)}). Its address in .gitmodules must be https, and readable without another token.`,
  )
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  )
}
