import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { workflowEvent } from '../events.ts'
import { type GithubDouble, startGithubDouble } from '../github-double.ts'
import { isStartedBy } from './trigger.ts'
import { runWorkflow, type WorkflowOptions, type WorkflowRun } from './workflow-run.ts'

let folder: string
let github: GithubDouble
const runs: WorkflowRun[] = []

beforeAll(async () => {
  github = await startGithubDouble()
})
afterAll(() => github.stop())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'workflow-test-'))
})
afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.dispose()))
  await rm(folder, { recursive: true, force: true })
})

async function runText(text: string, options: Partial<WorkflowOptions> = {}): Promise<WorkflowRun> {
  const path = join(folder, 'workflow.yml')
  await writeFile(path, text)
  const run = await runWorkflow({ path, event: workflowEvent('push'), github, ...options })
  if (run === null) throw new Error('it was not started')
  runs.push(run)
  return run
}

/** A job of these steps, on a push. */
const job = (steps: string, more = ''): string =>
  `on: push\n${more}jobs:\n  job:\n    runs-on: ubuntu-latest\n    steps:\n${steps.replace(/^(?=.)/gm, '      ')}`
const logs = ({ jobs }: WorkflowRun) => jobs.flatMap(({ steps }) => steps.map(({ result }) => result?.log ?? null))
const ends = ({ jobs }: WorkflowRun) =>
  jobs.flatMap(({ steps }) => steps.map(({ outcome, conclusion }) => `${outcome}/${conclusion}`))

describe('the steps of a job', () => {
  it('hand on outputs, environment and path', async () => {
    const text = job(
      `
- id: first
  run: |
    echo "word=\${{ github.event_name }}" >> "$GITHUB_OUTPUT"
    echo "LATER=set before" >> "$GITHUB_ENV"
    mkdir bin && printf '#!/bin/sh\\necho from the path' > bin/tool && chmod +x bin/tool
    echo "$PWD/bin" >> "$GITHUB_PATH"
- env: { OWN: '\${{ steps.first.outputs.word }} \${{ env.GIVEN }}' }
  run: echo "$OWN, $LATER, $GIVEN, $(tool)"
- run: echo "$LATER \${OWN:-gone}"
`,
      'env: { GIVEN: at the top, LATER: at the top }\n',
    )
    expect(logs(await runText(text))).toEqual(['', 'push at the top, set before, at the top, from the path', 'set before gone'])
  })

  it('run or are skipped by what happened before', async () => {
    const text = job(`
- run: exit 3
  continue-on-error: true
- run: 'true'
- run: exit 4
- run: 'true'
- if: failure() && github.ref_type == 'branch'
  run: 'true'
- if: \${{ always() }}
  run: echo "\${{ job.status }}"
- if: cancelled()
  run: 'true'
`)
    const run = await runText(text)
    const skipped = 'skipped/skipped'
    expect(ends(run)).toEqual([
      'failure/success',
      'success/success',
      'failure/failure',
      skipped,
      'success/success',
      'success/success',
      skipped,
    ])
    expect([logs(run)[5], run.jobs[0]?.conclusion]).toEqual(['failure', 'failure'])
  })

  it('stop at a failure inside a pipe only where the shell is named', async () => {
    const text = job('- run: false | true\n- run: false | true\n  shell: bash\n')
    expect(ends(await runText(text))).toEqual(['success/success', 'failure/failure'])
  })

  it('hide secrets, and what was masked, from then on', async () => {
    const text = job('- run: echo "::add-mask::hidden-word"\n- run: echo "hidden-word ${{ secrets.KEY }}"\n')
    expect(logs(await runText(text, { secrets: { KEY: 'the-secret' } }))).toEqual(['', '*** ***'])
  })

  it('leave processes running until the job ends, and no longer', async () => {
    const text = job('- run: sleep 60 > /dev/null 2>&1 & echo $! > pid\n- run: kill -0 $(cat pid) && cat pid\n')
    const run = await runText(text)
    expect(ends(run)).toEqual(['success/success', 'success/success'])
    expect(() => process.kill(Number(logs(run)[1]), 0)).toThrow('ESRCH')
  })

  it('end with a cancellation but for those that want to know of it', async () => {
    const text = job("- id: long\n  run: exec sleep 60\n- run: 'true'\n- if: cancelled()\n  run: 'true'\n")
    const run = await runText(text, { cancel: { step: 'long', when: () => true } })
    expect(ends(run)).toEqual(['cancelled/cancelled', 'skipped/skipped', 'success/success'])
    expect(run.jobs[0]?.conclusion).toBe('cancelled')
  })

  it('use actions: inputs with their defaults, and the ends of all at the end of the job, last one first', async () => {
    await mkdir(join(folder, 'own'))
    const action = 'name: own\ninputs: { word: {}, token: { default: "${{ github.token }}" } }\noutputs: { said: {} }\n'
    await writeFile(join(folder, 'own', 'action.yml'), `${action}runs: { using: node24, main: main.mjs, post: post.mjs }\n`)
    const main = `
import { appendFileSync } from 'node:fs'
const word = process.env.INPUT_WORD
appendFileSync(process.env.GITHUB_OUTPUT, 'said=' + word + ' ' + process.env.INPUT_TOKEN.length + '\\n')
appendFileSync(process.env.GITHUB_STATE, 'word=' + word + '\\n')
`
    await writeFile(join(folder, 'own', 'main.mjs'), main)
    await writeFile(
      join(folder, 'own', 'post.mjs'),
      "import { appendFileSync } from 'node:fs'\nappendFileSync('order', process.env.STATE_word)\n",
    )
    const text = job('- id: a\n  uses: ./own\n  with: { word: a }\n- uses: ./own\n  with: { word: b }\n- run: test ! -e order\n')
    const run = await runText(text, { workspace: folder })
    expect([run.jobs[0]?.conclusion, run.step('a').outputs]).toEqual(['success', { said: 'a 36' }])
    expect(logs(await runText(job('- run: cat order\n'), { workspace: folder }))).toEqual(['ba'])
  })
})

describe('jobs', () => {
  it('wait for what they need, and have a matrix of which this machine runs its part', async () => {
    const text = `
on: push
jobs:
  one:
    runs-on: ubuntu-latest
    outputs: { word: '\${{ steps.say.outputs.word }}' }
    steps: [{ id: say, run: 'echo word=hello >> "$GITHUB_OUTPUT"' }]
  two:
    needs: one
    strategy: { matrix: { os: [ubuntu-latest, windows-latest], size: [1] } }
    runs-on: \${{ matrix.os }}
    steps: [{ run: 'echo \${{ needs.one.outputs.word }} \${{ matrix.size }}; exit 1' }]
  three: { needs: two, runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
  four: { needs: two, if: failure(), runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
`
    const run = await runText(text)
    expect(run.jobs.map(({ name, conclusion }) => `${name}: ${conclusion}`)).toEqual([
      'one: success',
      'two ubuntu-latest 1: failure',
      'two windows-latest 1: elsewhere',
      'three: skipped',
      'four: success',
    ])
    expect(logs(run)[1]).toBe('hello 1')
  })

  it('have a token that may what they ask for, and only while they run', async () => {
    const curl = 'curl --silent --output /dev/null --write-out "%{http_code}"'
    const ask = `${curl} --header "authorization: token \${{ github.token }}" $GITHUB_API_URL/repos/acme/agents/deployments`
    const one = (id: string, more: string) => `  ${id}: { runs-on: ubuntu-latest, ${more} steps: [{ run: '${ask}' }] }\n`
    const text = `on: push\npermissions: {}\njobs:\n${one('without', '')}${one('with', 'permissions: { deployments: read },')}`
    const before = github.state.tokens.size
    const run = await runText(text)
    expect([logs(run), github.state.tokens.size]).toEqual([['403', '200'], before])
    expect(run.jobs.map(({ used }) => used.deployments)).toEqual(['read', 'read'])
  })
})

describe('a workflow that is wrong', () => {
  it.each([
    ['a step that is not there', '- run: echo ${{ steps.other.outputs.word }}', 'there is no steps.other'],
    [
      'an output that was not set',
      "- id: a\n  run: 'true'\n- run: echo ${{ steps.a.outputs.word }}",
      'there is no steps.a.outputs.word',
    ],
    ['a secret that is not there', '- run: echo ${{ secrets.OTHER }}', 'there is no secrets.OTHER'],
    ['an unknown action', '- uses: other/action@v1', 'does not know the action other/action@v1'],
    ['an unknown property', "- run: 'true'\n  wiht: {}", "Unexpected value 'wiht'"],
    ['a context that is not allowed there', "- if: secrets.KEY != ''\n  run: 'true'", "Unrecognized named-value: 'secrets'"],
  ])('fails by %s', async (_, steps, message) => {
    await expect(runText(job(steps), { secrets: { KEY: 'x-y-z' } })).rejects.toThrow(message)
  })
})

describe('an event', () => {
  const push = workflowEvent('push')
  const tag = workflowEvent('push-tag')
  const pull = workflowEvent('pull-request')
  it.each([
    [{ push: {} }, push, true],
    [{ push: { branches: ['main', 'feature/**'] } }, push, true],
    [{ push: { branches: ['main'] } }, push, false],
    [{ push: { branches: ['main'] } }, tag, false],
    [{ push: { tags: ['v*'] } }, tag, true],
    [{ pull_request: {} }, pull, true],
    [{ pull_request: { types: ['closed'] } }, pull, false],
    [{ pull_request: { branches: ['other'] } }, pull, false],
    [{ release: { types: ['published'] } }, workflowEvent('release'), true],
    [{ schedule: [{ cron: '1 2 * * *' }] }, { ...push, name: 'schedule', payload: { schedule: '1 2 * * *' } }, true],
    [{ workflow_dispatch: {} }, push, false],
  ])('%# of %o', (events, event, started) => {
    expect(isStartedBy(events, event)).toBe(started)
  })
})
