/* oxlint-disable no-console -- what it prints is its log */
import { createServer } from 'node:http'

// A small agent server: what it does besides answering is told by its environment.
const { VERSION = '1', MODE = 'answer', PORT = '8000', SAY = '' } = process.env
const graph = 'agent'

console.log(
  JSON.stringify({ timestamp: new Date().toISOString(), level: 'info', event: `version ${VERSION} starts`, mode: MODE }),
)
if (SAY !== '') console.log(`it was told to say ${SAY}`)
if (MODE === 'unwell') {
  console.error('there is no model to talk to')
  process.exit(3)
}

const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function bodyOf(request) {
  let text = ''
  for await (const chunk of request) text += chunk
  return text === '' ? {} : JSON.parse(text)
}

/** One run, told to the platform as agents do. */
async function trace(input) {
  const { LANGSMITH_ENDPOINT: endpoint, LANGSMITH_API_KEY: key, LANGSMITH_PROJECT: project } = process.env
  if (endpoint === undefined) return 'no endpoint'
  const now = new Date().toISOString()
  const run = {
    id: crypto.randomUUID(),
    name: graph,
    run_type: 'chain',
    inputs: input,
    start_time: now,
    end_time: now,
    session_name: project,
  }
  const headers = { 'X-Api-Key': key, 'Content-Type': 'application/json' }
  const response = await fetch(`${endpoint}/runs`, { method: 'POST', headers, body: JSON.stringify(run) })
  return `${response.status}`
}

async function answer(request, response) {
  const json = (status, body) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  const { pathname } = new URL(request.url, 'http://agent')
  const body = await bodyOf(request)
  if (pathname === '/ok') return MODE === 'silent' ? undefined : json(200, { ok: true })
  if (pathname === '/env') return json(200, process.env)
  if (pathname === '/trace') return json(200, { traced: await trace({ text: 'from the container' }) })
  if (pathname === '/say') return (console.log(body.text), json(200, {}))
  if (pathname === '/crash') process.exit(9)
  if (pathname === '/hoard') return (hoard(), json(200, {}))
  if (pathname === '/assistants/search') return json(200, [{ assistant_id: 'id-0', graph_id: graph, name: graph }])
  if (pathname !== '/runs/stream') return json(404, { detail: 'Not Found' })
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  response.write(event('metadata', { run_id: crypto.randomUUID(), attempt: 1 }))
  const text = String(body.input?.messages?.at(-1)?.content ?? '')
  await sleep(Number(/^\d+$/.exec(text)?.[0] ?? 0))
  response.end(event('updates', { answer: { messages: [{ type: 'ai', content: `version ${VERSION}: ${text}`, id: 'run-1' }] } }))
}

const hoarded = []
function hoard() {
  setInterval(() => hoarded.push(Buffer.alloc(16 * 1024 * 1024, 1)), 5)
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error)
    response.destroy()
  })
})
server.listen(Number(PORT))
process.on('SIGTERM', () => {
  console.log('asked to stop')
  server.close(() => process.exit(0))
})
