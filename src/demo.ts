import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ACCESS_KEY, type BucketServer, startBucketServer } from '../test/platform/bulk-export/support/bucket-server.ts'
import { createGitRepository, type GitRepository } from '../test/support/git-repository.ts'
import { runAction, type RunResult } from '../test/support/runner.ts'
import type { WorkflowEvent } from '../test/support/runner/job-environment.ts'
import { askAgent } from './demo/ask-agent.ts'
import { countRows } from './demo/read-back.ts'
import { readable } from './demo/readable.ts'
import { startPlatform, type PlatformProcess } from './demo/platform-process.ts'
import { settledProject } from './demo/traces.ts'

/**
 * The main job, end to end, on this machine: a platform, a git repository, and the committed bundle run as GitHub runs it. A branch is
 * deployed, then a tag, then an agent that is broken; in the end the traces of it all are exported into a bucket and read back. Ends
 * with exit code 0 only when everything ended as it should.
 */

const DEPLOYMENT = 'echo-agent'
const QUESTION = 'who serves?'
const STEP_LIMIT_MS = 180_000

type Stage = { platform: PlatformProcess; repository: GitRepository; bucket: BucketServer; signal: AbortSignal }
type Expected = { conclusion: RunResult['conclusion']; outputs: Record<string, string>; answer: string }

const started = performance.now()

function heading(text: string): void {
  console.log(`\n\n══ ${text} ${'═'.repeat(Math.max(3, 96 - text.length))} ${((performance.now() - started) / 1000).toFixed(1)} s\n`)
}

function block(title: string, text: string): void {
  console.log(`\n── ${title}`)
  console.log(text.trimEnd().replace(/^/gm, '   '))
}

function pushOf(ref: string, sha: string): WorkflowEvent {
  return { name: 'push', ref, sha, payload: { ref, after: sha, head_commit: { id: sha } } }
}

/**
 * Runs the step for a push, shows all of it, asks the agent, and throws when something did not go as it should. Returns the agent's
 * address.
 */
async function deploy({ platform, repository, signal }: Stage, event: WorkflowEvent, expected: Expected): Promise<string> {
  console.log('The step runs; what it wrote follows when it has ended.')
  const result = await runAction({
    with: {
      'api-key': platform.apiKey,
      'control-plane-url': platform.url,
      'deployment-name': DEPLOYMENT,
      'repo-url': repository.url,
      timeout: '2m',
    },
    event,
    cwd: repository.path,
    knownSecrets: [platform.apiKey],
    timeoutMs: STEP_LIMIT_MS,
    cancelWhen: () => signal.aborted,
  })
  try {
    show(result)
    signal.throwIfAborted()
    failOn([
      ...(result.conclusion === expected.conclusion ? [] : [`the step ended in ${result.conclusion}, not ${expected.conclusion}`]),
      ...(result.post?.conclusion === 'success' ? [] : ['the post step failed']),
      ...Object.entries(expected.outputs)
        .filter(([name, value]) => result.outputs[name] !== value)
        .map(([name, value]) => `the output ${name} is "${result.outputs[name] ?? ''}", not "${value}"`),
    ])
    const deploymentUrl = result.outputs['deployment-url'] ?? ''
    const { text, events, firstEventMs } = await askAgent({
      deploymentUrl,
      apiKey: platform.apiKey,
      assistant: 'agent',
      question: QUESTION,
      signal,
    })
    block(`the agent, asked "${QUESTION}"`, `${text}   (${events} events, the first after ${firstEventMs.toFixed(0)} ms)`)
    failOn(text === expected.answer ? [] : [`the agent answered "${text}", not "${expected.answer}"`])
    return deploymentUrl
  } finally {
    await result.dispose()
  }
}

/** Asks the agent a few questions, exports the traces of its deployment, and counts what is in the bucket. */
async function exportTraces({ platform, repository, bucket, signal }: Stage, deploymentUrl: string): Promise<void> {
  for (const question of ['what is new?', 'and what else?', 'who asked?']) {
    await askAgent({ deploymentUrl, apiKey: platform.apiKey, assistant: 'agent', question, signal })
  }
  const project = await settledProject({ url: platform.url, apiKey: platform.apiKey, name: DEPLOYMENT, signal })
  const result = await runAction({
    with: {
      mode: 'export',
      'api-key': platform.apiKey,
      'workspace-id': platform.workspaceId,
      'api-url': platform.url,
      'export-project-id': project.id,
      'export-bucket': bucket.bucket,
      'export-prefix': DEPLOYMENT,
      'export-bucket-region': 'eu-central-1',
      'export-endpoint-url': bucket.url,
      'export-access-key-id': ACCESS_KEY.access_key_id,
      'export-secret-access-key': ACCESS_KEY.secret_access_key,
      'export-start': '-24h',
      'export-end': 'now',
      'export-timeout': '2m',
    },
    event: pushOf('refs/heads/main', await repository.head()),
    cwd: repository.path,
    knownSecrets: [platform.apiKey],
    timeoutMs: STEP_LIMIT_MS,
    cancelWhen: () => signal.aborted,
  })
  try {
    show(result)
    signal.throwIfAborted()
    failOn(result.outputs['status'] === 'exported' ? [] : [`the export ended in ${result.conclusion}`])
    const files = (await bucket.keys()).filter((key) => key.endsWith('.parquet'))
    const counts = await countRows(files.map(bucket.fileOf))
    const rows = [...counts.values()].reduce((sum, count) => sum + count, 0)
    block('the Parquet in the bucket, read back', [...files, ...[...counts].map(([kind, count]) => `${count} ${kind} runs`)].join('\n'))
    const { run_count: stored } = project
    failOn([
      ...(rows === stored ? [] : [`${rows} rows were read back, and the platform has ${stored} runs`]),
      ...(result.outputs['export-rows'] === String(rows) ? [] : [`the output export-rows is not ${rows}`]),
    ])
  } finally {
    await result.dispose()
  }
}

function show(result: RunResult): void {
  block('log', result.log)
  if (result.post !== null && result.post.log !== '') block('log of the post step', result.post.log)
  block('outputs', Object.entries(result.outputs).map(([name, value]) => `${name}=${value}`).join('\n'))
  block('job summary', readable(result.summary))
  const mark = result.conclusion === 'success' ? '✓ green' : '✗ red'
  block('step', `${mark}, exit code ${result.exitCode}, ${(result.durationMs / 1000).toFixed(1)} s`)
}

function failOn(faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(faults.join('\n'))
}

async function story(stage: Stage): Promise<void> {
  const { repository } = stage
  const agent = readFileSync(join(repository.path, 'agent.mjs'), 'utf8')
  heading('1. Push to main: the deployment is created')
  const first = await repository.head()
  await deploy(stage, pushOf('refs/heads/main', first), {
    conclusion: 'success',
    outputs: { status: 'deployed', created: 'true', 'revision-status': 'DEPLOYED', 'commit-sha': first },
    answer: `echo 1: ${QUESTION}`,
  })

  heading('2. The agent changes, and is tagged v2.0.0: the deployment gets a new revision')
  const changed = agent.replace("VERSION = '1'", "VERSION = '2'")
  const second = await repository.commit({ 'agent.mjs': changed }, 'Answer as version 2')
  await repository.tag('v2.0.0')
  await deploy(stage, pushOf('refs/tags/v2.0.0', second), {
    conclusion: 'success',
    outputs: { status: 'deployed', created: 'false', 'revision-status': 'DEPLOYED', 'commit-sha': second },
    answer: `echo 2: ${QUESTION}`,
  })

  heading('3. A push that forgets a file: the step goes red, version 2 goes on serving')
  const broken = `import './prompts.mjs'\n${changed}`
  const third = await repository.commit({ 'agent.mjs': broken }, 'Use prompts.mjs, which nobody added')
  const address = await deploy(stage, pushOf('refs/heads/main', third), {
    conclusion: 'failure',
    outputs: { status: 'failed', 'error-code': 'E_DEPLOY_FAILED' },
    answer: `echo 2: ${QUESTION}`,
  })

  heading('4. The traces of these questions, and of a few more, are exported into a bucket and read back')
  await exportTraces(stage, address)
}

const cancel = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => cancel.abort(new Error(`stopped by ${signal}`)))
}

const folder = mkdtempSync(join(tmpdir(), 'deploy-agent-server-demo-'))
// Whatever is made for a while by anyone below is made in there, and goes with it.
process.env['TMPDIR'] = folder
let platform: PlatformProcess | undefined
let bucket: BucketServer | undefined
try {
  heading('The platform starts, on a free port and in a temporary folder')
  platform = await startPlatform({ folder, signal: cancel.signal })
  console.log(`It serves at ${platform.url}.`)
  const repository = await createGitRepository({ from: join(import.meta.dirname, '..', 'examples', 'echo-agent') })
  bucket = await startBucketServer()
  await story({ platform, repository, bucket, signal: cancel.signal })
  heading('Everything ended as it should; the platform stops')
  console.log('Next: README.md, "A first deploy without GitHub", with a platform that stays: npm run platform')
} catch (error) {
  process.exitCode = 1
  if (cancel.signal.aborted) console.error(`\nThe demo was ${(cancel.signal.reason as Error).message}.`)
  else console.error(`\nThe demo failed: ${(error as Error).message}`)
  if (platform !== undefined && !cancel.signal.aborted) console.error(`\nThe end of the platform's log:\n${platform.logTail(40)}`)
} finally {
  await platform?.stop()
  await bucket?.stop()
  rmSync(folder, { recursive: true, force: true })
}
