import { setTimeout as delay } from 'node:timers/promises'

type Project = { id: string; run_count: number | null }

const LIMIT_MS = 20_000
const PAUSE_MS = 1000

/** The tracing project of a deployment, once no more runs arrive: the agent sends them some time after it has answered. */
export async function settledProject(options: { url: string; apiKey: string; name: string; signal: AbortSignal }): Promise<Project> {
  const { url, apiKey, name, signal } = options
  let before: Project | undefined
  for (let waited = 0; waited < LIMIT_MS; waited += PAUSE_MS) {
    const address = `${url}/sessions?name=${encodeURIComponent(name)}&include_stats=true`
    const answer = await fetch(address, { headers: { 'x-api-key': apiKey }, signal })
    if (!answer.ok) throw new Error(`the list of tracing projects was answered with ${answer.status}`)
    const [project] = (await answer.json()) as Project[]
    if (project?.run_count && project.run_count === before?.run_count) return project
    before = project
    await delay(PAUSE_MS, undefined, { signal })
  }
  throw new Error(`the traces of ${name} did not come to rest within ${LIMIT_MS / 1000} s (${before?.run_count ?? 'no'} runs)`)
}
