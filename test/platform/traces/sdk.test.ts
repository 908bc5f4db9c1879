import { Client, RunTree } from 'langsmith'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTraceService, type TraceService } from './support/trace-service.ts'

let service: TraceService
/** What the SDK sent: method, path, encoding, status. */
let requests: string[]

beforeAll(async () => {
  service = await startTraceService()
})
beforeEach(() => {
  requests = []
})
afterAll(() => service.stop())

function makeClient(options: { apiUrl?: string; autoBatchTracing?: boolean; multipart?: boolean; gzip?: boolean } = {}): Client {
  const { apiUrl = service.url, autoBatchTracing = true, multipart = true, gzip = true } = options
  return new Client({
    apiUrl,
    apiKey: service.ours.key,
    autoBatchTracing,
    callerOptions: { maxRetries: 0 },
    fetchImplementation: async (input, init) => {
      const response = await fetch(input, init)
      const headers = new Headers(init?.headers)
      const path = new URL(input instanceof Request ? input.url : input).pathname
      requests.push(`${init?.method ?? 'GET'} ${path} ${headers.get('content-encoding') ?? 'plain'} ${response.status}`)
      if (!path.endsWith('/info')) return response
      // The same service as one that lacks a way in: the SDK then takes another.
      const info = (await response.json()) as { batch_ingest_config: object; instance_flags: object }
      return Response.json({
        ...info,
        batch_ingest_config: { ...info.batch_ingest_config, use_multipart_endpoint: multipart },
        instance_flags: { ...info.instance_flags, gzip_body_enabled: gzip },
      })
    },
  })
}

/** A conversation as an agent traces it: posted while it runs, patched when it is over. */
async function traceConversation(client: Client, project: string): Promise<{ root: string; model: string; tool: string }> {
  const root = new RunTree({
    name: 'agent',
    run_type: 'chain',
    client,
    project_name: project,
    inputs: { question: 'Was fährt früh?' },
    tags: ['live'],
  })
  await root.postRun()
  const model = root.createChild({
    name: 'model',
    run_type: 'llm',
    inputs: { messages: [{ role: 'user', content: 'hi "you"' }] },
  })
  await model.postRun()
  const tool = model.createChild({ name: 'lookup', run_type: 'tool', inputs: { query: 'x' } })
  await tool.postRun()
  await tool.end(undefined, 'TimeoutError: no answer')
  await tool.patchRun()
  await model.end({ content: 'hello', usage_metadata: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } })
  await model.patchRun()
  await root.end({ answer: 'der Bus' })
  await root.patchRun()
  await client.awaitPendingTraceBatches()
  return { root: root.id, model: model.id, tool: tool.id }
}

test.each([
  ['multipart, compressed', {}, 'POST /runs/multipart gzip 202'],
  ['multipart, plain', { gzip: false }, 'POST /runs/multipart plain 202'],
  ['batches', { multipart: false }, 'POST /runs/batch plain 202'],
  ['one request a run', { autoBatchTracing: false }, 'POST /runs plain 202'],
])('a conversation sent as %s is a tree', async (name, options, request) => {
  const client = makeClient(options)
  const ids = await traceConversation(client, name)
  expect(requests).toContain(request)
  expect(requests.filter((line) => line.includes('/runs') && !line.endsWith('202'))).toEqual([])

  const project = await client.readProject({ projectName: name })
  const { body } = await service.send('POST', '/runs/query', { session: [project.id], order: 'asc' })
  expect(
    body.runs.map((run: { id: string; parent_run_ids: string[]; status: string; trace_id: string }) => [
      run.id,
      run.parent_run_ids,
      run.status,
      run.trace_id,
    ]),
  ).toEqual(
    expect.arrayContaining([
      [ids.root, [], 'success', ids.root],
      [ids.model, [ids.root], 'success', ids.root],
      [ids.tool, [ids.root, ids.model], 'error', ids.root],
    ]),
  )
  expect(body.runs).toHaveLength(3)
  const run = await client.readRun(ids.root, { loadChildRuns: true })
  expect(run).toMatchObject({
    inputs: { question: 'Was fährt früh?' },
    outputs: { answer: 'der Bus' },
    tags: ['live'],
    child_runs: [{ id: ids.model, child_runs: [{ id: ids.tool }] }],
  })
  expect(await client.readRun(ids.tool)).toMatchObject({ error: 'TimeoutError: no answer', status: 'error' })
  expect(await client.readRun(ids.model)).toMatchObject({ total_tokens: 7, prompt_tokens: 3, outputs: { content: 'hello' } })
})

test('an attachment goes along', async () => {
  const client = makeClient()
  const run = new RunTree({
    name: 'with image',
    client,
    project_name: 'attachments',
    inputs: {},
    attachments: { image: ['image/png', new Uint8Array([137, 80, 78, 71, 13, 10, 45, 45])] },
  })
  await run.postRun()
  await run.end({})
  await run.patchRun()
  await client.awaitPendingTraceBatches()
  expect((await service.send('GET', `/runs/${run.id}`)).body).toMatchObject({
    attachments: [{ name: 'image', content_type: 'image/png', size_bytes: 8 }],
  })
})

test('projects, runs by pages and filters, feedback and numbers, through the prefix too', async () => {
  const client = makeClient({ apiUrl: `${service.url}/api/v1` })
  const project = await client.createProject({ projectName: 'by sdk', description: 'made by the SDK', metadata: { team: 'a' } })
  expect(await client.createProject({ projectName: 'by sdk', upsert: true })).toMatchObject({ id: project.id })
  await expect(client.createProject({ projectName: 'by sdk' })).rejects.toThrow(/already exists/)
  expect(await client.hasProject({ projectName: 'by sdk' })).toBe(true)
  expect(await client.hasProject({ projectName: 'nothing' })).toBe(false)

  const ids: string[] = []
  for (let index = 0; index < 120; index += 1) {
    const run = new RunTree({
      name: `run ${index}`,
      client,
      project_name: 'by sdk',
      inputs: { index },
      tags: index % 2 ? ['odd'] : [],
    })
    await run.postRun()
    await run.end({ index })
    await run.patchRun()
    ids.push(run.id)
  }
  await client.awaitPendingTraceBatches()
  const listed: string[] = []
  for await (const run of client.listRuns({ projectName: 'by sdk' })) listed.push(run.id)
  expect(listed.toSorted()).toEqual(ids.toSorted())
  const odd: string[] = []
  for await (const run of client.listRuns({ projectId: project.id, filter: 'and(has(tags, "odd"), eq(is_root, true))' }))
    odd.push(run.id)
  expect(odd).toHaveLength(60)

  const [first, second] = ids as [string, string]
  await client.createFeedback(first, 'helpful', { score: 1, comment: 'yes', sessionId: project.id })
  await client.createFeedback(first, 'helpful', { score: 0, sessionId: project.id })
  const given = await client.createFeedback(first, 'tone', { value: 'warm', sessionId: project.id })
  expect(await client.readRun(first)).toMatchObject({
    feedback_stats: { helpful: { n: 2, avg: 0.5, values: {} }, tone: { n: 1, avg: null, values: { warm: 1 } } },
    trace_tier: 'longlived',
  })
  expect(await client.readRun(second)).toMatchObject({ feedback_stats: null, trace_tier: 'shortlived' })
  const helpful: unknown[] = []
  for await (const feedback of client.listFeedback({ runIds: [first], feedbackKeys: ['helpful'] })) helpful.push(feedback.score)
  expect(helpful.toSorted()).toEqual([0, 1])
  await client.updateFeedback(given.id, { comment: 'very' })
  expect(await client.readFeedback(given.id)).toMatchObject({ comment: 'very', value: 'warm', trace_id: first })
  await client.deleteFeedback(given.id)
  await expect(client.readFeedback(given.id)).rejects.toThrow(/Feedback ID .* not found/)

  expect(await client.getRunStats({ projectIds: [project.id] })).toMatchObject({ run_count: 120, error_rate: 0 })
  expect(await client.readProject({ projectId: project.id, includeStats: true })).toMatchObject({
    run_count: 120,
    description: 'made by the SDK',
  })
  await client.updateProject(project.id, { name: 'by sdk, renamed' })
  await client.deleteProject({ projectId: project.id })
  expect(await client.hasProject({ projectName: 'by sdk, renamed' })).toBe(false)
  await expect(client.readRun(first)).rejects.toThrow(/Run ID .* not found/)
  expect(await service.db.selectFrom('feedback').select('id').where('run_id', '=', first).execute()).toEqual([])
})
