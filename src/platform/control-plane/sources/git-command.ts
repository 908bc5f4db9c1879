import { isTagRef, repoRefSchema } from '../../../contract/git-ref.ts'
import { baseEnvironment, type Environment } from '../runtimes/child-environment.ts'
import { diskFull, isDiskFull } from './disk-full.ts'
import type { Remote } from './repository-url.ts'
import { runStep, type StepResult } from './run-step.ts'
import { type BuildEffects, BuildFailure, type GitSource } from './source.ts'

/** A source's ref that means: whatever branch the repository itself calls its default. */
export const DEFAULT_BRANCH = 'HEAD'

export interface GitStep {
  readonly args: readonly string[]
  readonly remote: Remote
  readonly cwd?: string
}

/** Runs git once, with nothing of this machine's configuration. */
export function git({ args, remote, cwd }: GitStep, effects: BuildEffects): Promise<StepResult> {
  return runStep(
    {
      command: 'git',
      args,
      cwd: cwd ?? '/',
      env: gitEnvironment(remote),
      level: (line, stream) => {
        if (stream === 'stdout') return null
        return /^(fatal|error):/.test(line) ? 'ERROR' : 'INFO'
      },
    },
    effects,
  )
}

/**
 * Nothing of the machine's or the user's git configuration applies, nothing asks a question, nothing of a repository is executed.
 * The token travels in the environment: arguments and `.git/config` can be read by others.
 */
function gitEnvironment(remote: Remote): Environment {
  const config: [string, string][] = [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.askPass', ''],
    ['credential.helper', ''],
    ['protocol.ext.allow', 'never'],
    ['advice.detachedHead', 'false'],
    ['gc.auto', '0'],
    // A server that has stopped sending is given up.
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '60'],
  ]
  if (remote.authorization !== undefined) {
    const { origin, value } = remote.authorization
    config.push([`http.${origin}.extraHeader`, `Authorization: ${value}`])
  }
  const env: Environment = {
    ...baseEnvironment('/nonexistent'),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: remote.protocols,
    GIT_CONFIG_COUNT: String(config.length),
  }
  for (const [index, [key, value]] of config.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key
    env[`GIT_CONFIG_VALUE_${index}`] = value
  }
  return env
}

/** The full ref: never an option, never a wildcard, never another namespace. */
export function fullRef(ref: string): string {
  if (ref === DEFAULT_BRANCH) return ref
  const parsed = repoRefSchema.safeParse(ref)
  if (!parsed.success) throw new BuildFailure(`'${ref}' is not a ref: ${parsed.error.issues[0]?.message ?? 'it is malformed'}.`)
  return isTagRef(ref) ? ref : `refs/heads/${ref}`
}

/** What git said, as a sentence that tells the user what to do; git's own words are in the log. */
export function failure(result: StepResult, source: GitSource, remote: Remote): BuildFailure {
  const output = result.tail.join('\n')
  const words = ownWords(result)
  if (/couldn't find remote ref/i.test(output)) return missingRef(fullRef(source.ref), remote)
  if (/terminal prompts disabled|Authentication failed|could not read (Username|Password)|returned error: 40[13]/i.test(output)) {
    const given = remote.authorization === undefined ? 'no token was given' : 'the token that was given does not open it'
    return new BuildFailure(`${remote.url} is private or does not exist, and ${given} (git: ${words}). Check the address and the token.`)
  }
  if (/repository .* not found|does not appear to be a git repository|returned error: 404|not valid: is this a git repository/i.test(output)) {
    return new BuildFailure(`There is no git repository at ${remote.url} (git: ${words}). Check repo_url.`)
  }
  if (/Could not resolve host|Failed to connect|Connection refused|Connection timed out|unable to access/i.test(output)) {
    return new BuildFailure(`${remote.url} could not be reached (git: ${words}). Try again, or check repo_url.`)
  }
  if (isDiskFull(result)) return diskFull()
  if (result.exit.code === 127) return new BuildFailure('There is no git on this machine: the platform needs the git program.')
  return new BuildFailure(`git could not read ${remote.url} (${words}).`)
}

export function missingRef(ref: string, remote: Remote): BuildFailure {
  if (ref === DEFAULT_BRANCH) return new BuildFailure(`${remote.url} has no default branch with a commit. Push one, or set repo_ref.`)
  const kind = isTagRef(ref) ? 'tag' : 'branch'
  return new BuildFailure(`The ${kind} ${ref} does not exist in ${remote.url}. Push it, or correct repo_ref.`)
}

export function ownWords(result: StepResult): string {
  // The first is the cause; what follows tells what it led to.
  const telling = result.tail.find((line) => /^(fatal|error):/.test(line)) ?? result.tail.at(-1) ?? 'it said nothing'
  return telling.slice(0, 500)
}
