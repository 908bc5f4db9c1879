import './fail-closed.ts'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { realEffects as effects } from '../client/effects.ts'
import { createCancellation } from './cancellation.ts'
import { conclude, unwritableOutput } from './conclude.ts'
import { connect } from './connect.ts'
import { connectGithub } from './github/connect.ts'
import { readGithubContext } from './github/context.ts'
import { postRecord } from './github/post.ts'
import { parseStepInputs, type RawInputs, type StepInputs, wantedExport } from './inputs.ts'
import { createIo } from './io.ts'
import { createJournal } from './journal.ts'
import { type Outcome, run } from './main.ts'
import { createRedactor } from './masks.ts'
import { runPost } from './post.ts'
import { reasonToSkip } from './preview/fork.ts'
import { ActionFailure, toFailure } from './report/error-codes.ts'
import { createLog } from './report/log.ts'
import { readCheckout } from './smoke/assistant.ts'

/** After a cancellation the runner waits 7.5 s before it insists: the step tells what happened well before that. */
const CANCEL_LIMIT_MS = 4500

/** The file that action.yml names for post; it imports this bundle. */
const POST_ENTRY = 'post-entry.mjs'

const { env } = process
const redactor = createRedactor()
const io = createIo({ env, redactor })
const log = createLog({ write: (line) => process.stdout.write(`${line}\n`), redactor, token: randomUUID })
const github = readGithubContext(env, (path) => readFileSync(path, 'utf8'))
const checkout = (path: string) => readCheckout(env['GITHUB_WORKSPACE'], path)

// The state is missing when main was stopped before it could begin: then only the entry tells, and post must not deploy.
if (basename(process.argv[1] ?? '') === POST_ENTRY || io.getState('isPost') !== '') post()
else main()

function main(): void {
  const journal = createJournal({ io, startedAt: effects.now() })
  let raw: RawInputs | undefined
  let inputs: StepInputs | undefined
  let waited: (() => number) | undefined
  let waitedFor: (() => readonly string[]) | undefined
  let ended = false

  const end = (outcome: Outcome): void => {
    if (ended) return
    ended = true
    let green = false
    try {
      const rateLimitWaitMs = (waited?.() ?? 0) + journal.rateLimitWaitMs()
      green = conclude({
        outcome,
        inputs,
        summary: raw?.summary !== 'false',
        journal,
        io,
        log,
        redactor,
        github,
        rateLimitWaitMs,
        rateLimits: waitedFor?.() ?? [],
        now: effects.now(),
      })
    } catch (error) {
      log.error({
        title: 'E_PROTOCOL: internal error',
        message: `The end of the step could not be told: ${toFailure(error).message}`,
      })
    }
    exit(green ? 0 : 1)
  }
  const crash = (error: unknown): void => end({ failure: toFailure(error) })
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
  process.on('beforeExit', () => crash(new Error('the step ran out of work before it was done')))

  const signal = createCancellation({
    on: (name, listener) => process.on(name, listener),
    info: log.info,
    giveUp: () => process.exit(1),
  })
  signal.addEventListener('abort', () => {
    // Already now: a second signal leaves no time for it.
    if (!ended) journal.set('status', 'cancelled')
    const late = new ActionFailure({
      code: 'E_CANCELLED',
      happened: 'The step was cancelled, and what it was doing did not end in time.',
    })
    setTimeout(() => end({ failure: late }), CANCEL_LIMIT_MS)
  })

  const start = async (): Promise<Outcome> => {
    raw = io.readInputs()
    // Without this mark post would take itself for main, and deploy once more.
    if (!io.saveState('isPost', 'true')) {
      return {
        failure: new ActionFailure({
          code: 'E_INPUT',
          happened: 'The file that GITHUB_STATE names cannot be written.',
          next: 'Repair the runner.',
        }),
      }
    }
    const problem = io.outputProblem()
    if (problem !== undefined) return { failure: unwritableOutput(problem) }
    // What later steps see if the process is killed; the end says otherwise.
    journal.set('status', 'failed')
    const skipped = reasonToSkip(raw, github)
    if (skipped !== undefined) {
      log.notice(skipped)
      journal.note(skipped)
      return { status: 'skipped' }
    }
    inputs = parseStepInputs(raw, github, effects.now())
    const { waitedForRateLimitMs, rateLimitsWaitedFor, ...clients } = connect({ inputs, effects, log, redact: redactor.redact })
    waited = waitedForRateLimitMs
    waitedFor = rateLimitsWaitedFor
    const { redact } = redactor
    const shared = { context: github, effects, log, redact }
    const hub = connectGithub({ ...shared, token: inputs.githubToken })
    return await run(inputs, { ...clients, ...shared, github: hub, checkout, journal, signal })
  }
  start().then(end, crash)
}

function post(): void {
  const failed = (error: unknown): void => {
    log.warning(`The post step failed: ${error instanceof Error ? error.message : String(error)}`)
    exit(0)
  }
  process.on('uncaughtException', failed)
  process.on('unhandledRejection', failed)
  process.on('beforeExit', () => exit(0))
  const raw = io.readInputs()
  runPost({
    getState: io.getState,
    connect: () => {
      const inputs = parseStepInputs(raw, github, effects.now())
      const deps = { ...connect({ inputs, effects, log, redact: redactor.redact }), effects }
      return { onCancel: inputs.onCancel, apiUrl: wantedExport(inputs)?.apiUrl, deps }
    },
    log,
  })
    .finally(() =>
      postRecord({
        getState: io.getState,
        github: () => connectGithub({ token: raw['github-token'] || undefined, context: github, effects, log, redact: redactor.redact }),
        context: github,
        effects,
        log,
      }),
    )
    .then(() => exit(0), failed)
}

/** Ends the process once what was printed is out: a socket that still hangs must not hold the step. */
function exit(code: number): void {
  process.exitCode = code
  process.stdout.write('', () => process.exit(code))
}
