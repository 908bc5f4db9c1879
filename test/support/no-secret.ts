import { lstat, readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { readable } from './readable.ts'
import { encodedForms } from './runner/secret-masker.ts'
import type { PhaseResult, RunResult } from './runner.ts'

/**
 * Fails when one of `secrets`, plain or in a form that the runner would hide, is anywhere that a step can leave it: raw standard
 * output and error (the `::add-mask::` commands themselves aside), outputs, state, environment, summary, annotations, the log,
 * and every file in the job's folders. Stricter than the runner's mask on purpose: that mask is the second line of defence.
 */
export async function assertNoSecret(result: RunResult, secrets: readonly string[]): Promise<void> {
  const places: [place: string, text: string][] = [...placesOf('main', result)]
  if (result.post !== null) places.push(...placesOf('post', result.post))
  for await (const [file, text] of filesUnder(result.folder)) places.push([`file ${file}`, text])

  const leaks: string[] = []
  for (const [index, secret] of secrets.entries()) {
    if (secret.length < 4) throw new Error(`secret ${index} is too short to be told from other text`)
    const forms = new Set([secret, ...encodedForms(secret).filter((form) => form.length >= 4)])
    for (const [place, text] of places) {
      for (const form of forms) {
        const at = text.indexOf(form)
        if (at < 0) continue
        const before = text.slice(Math.max(0, at - 80), at)
        leaks.push(`secret ${index} in ${place}: …${before}[SECRET]${text.slice(at + form.length).slice(0, 40)}…`)
        break
      }
    }
  }
  if (leaks.length > 0) throw new Error(`a secret left the step:\n${leaks.join('\n')}`)
}

function placesOf(phase: string, result: PhaseResult): [string, string][] {
  return [
    [`${phase} stdout`, withoutMasks(result.stdout)],
    [`${phase} stderr`, withoutMasks(result.stderr)],
    [`${phase} outputs`, valuesOf(result.outputs)],
    [`${phase} state`, valuesOf(result.state)],
    [`${phase} environment`, valuesOf(result.env)],
    [`${phase} summary`, result.summary],
    [`${phase} summary as it is read`, readable(result.summary)],
    [`${phase} annotations`, result.annotations.map(({ title, message }) => `${title}\n${message}`).join('\n')],
    [`${phase} log`, result.log],
  ]
}

/** A command that hides a secret has to say it; the runner takes that line out. */
function withoutMasks(text: string): string {
  return text.replace(/^\s*::add-mask::.*$/gm, '::add-mask::')
}

function valuesOf(record: Readonly<Record<string, string>>): string {
  return Object.entries(record).map(([name, value]) => `${name}=${value}`).join('\n')
}

async function* filesUnder(root: string, folder = root): AsyncGenerator<[path: string, text: string]> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const info = await lstat(path)
    if (info.isDirectory()) yield* filesUnder(root, path)
    else if (info.isFile()) yield [relative(root, path), await readFile(path, 'utf8')]
  }
}
