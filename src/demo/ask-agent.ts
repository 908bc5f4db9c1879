import { createParser } from 'eventsource-parser'

/** What came back: the text of the last message, how many events it took, and when the first one came. */
export type AgentAnswer = { text: string; events: number; firstEventMs: number }

type Question = { deploymentUrl: string; apiKey: string; assistant: string; question: string; signal: AbortSignal }

const LIMIT_MS = 30_000

/** Runs the assistant without a thread (specification 4.2) and reads its stream to the end. Throws when the run fails. */
export async function askAgent({ deploymentUrl, apiKey, assistant, question, signal }: Question): Promise<AgentAnswer> {
  const start = performance.now()
  const response = await fetch(`${deploymentUrl}/runs/stream`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Api-Key': apiKey },
    body: JSON.stringify({
      assistant_id: assistant,
      input: { messages: [{ role: 'user', content: question }] },
      stream_mode: 'messages',
    }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]),
  })
  if (!response.ok || response.body === null) throw new Error(`the agent answered ${response.status}: ${await response.text()}`)
  const answer: AgentAnswer = { text: '', events: 0, firstEventMs: 0 }
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (answer.events === 0) answer.firstEventMs = performance.now() - start
      answer.events += 1
      if (event === 'error') throw new Error(`the run failed: ${data}`)
      if (event === 'messages/partial' || event === 'messages/complete') answer.text = lastText(JSON.parse(data)) ?? answer.text
    },
    maxBufferSize: 1_000_000,
  })
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) parser.feed(chunk)
  return answer
}

function lastText(messages: unknown): string | undefined {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
  const content = typeof last === 'object' && last !== null && 'content' in last ? last.content : undefined
  return typeof content === 'string' ? content : undefined
}
