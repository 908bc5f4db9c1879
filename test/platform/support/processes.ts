import { readdirSync, readFileSync } from 'node:fs'

/** Numbers of the live processes of this machine whose command line holds the text (Linux). */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        const state = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /, '')[0]
        return state !== 'Z' && readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Waits until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`it did not come true within ${timeoutMs} ms: ${condition.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
