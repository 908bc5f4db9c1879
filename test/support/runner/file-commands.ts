import { createReadStream } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { SecretMasker } from './secret-masker.ts'

/** Above this the runner drops the whole summary (actions/runner: FileCommandManager.cs). */
export const SUMMARY_MAX_BYTES = 1024 * 1024

/** The files through which a step speaks to the runner; new ones for main and for post. */
export type FileCommandPaths = { output: string; state: string; env: string; path: string; summary: string }

export async function createFileCommands(runnerTemp: string): Promise<FileCommandPaths> {
  const folder = join(runnerTemp, '_runner_file_commands')
  await mkdir(folder, { recursive: true })
  const suffix = randomUUID()
  const paths: FileCommandPaths = {
    output: join(folder, `set_output_${suffix}`),
    state: join(folder, `save_state_${suffix}`),
    env: join(folder, `set_env_${suffix}`),
    path: join(folder, `add_path_${suffix}`),
    summary: join(folder, `step_summary_${suffix}`),
  }
  await Promise.all(Object.values(paths).map((path) => writeFile(path, '')))
  return paths
}

export type FileCommandResults = {
  outputs: Record<string, string>
  state: Record<string, string>
  env: Record<string, string>
  path: string[]
  /** As GitHub shows it: masked line by line; empty when the runner drops it. */
  summary: string
  /** Error annotations that the runner adds. Those of `failures` also fail the step, that of a summary does not. */
  failures: string[]
  problems: string[]
}

/** Reads the files after the process has ended, with the runner's own rules and its own complaints. */
export async function readFileCommands(paths: FileCommandPaths, masker: SecretMasker): Promise<FileCommandResults> {
  const results: FileCommandResults = { outputs: {}, state: {}, env: {}, path: [], summary: '', failures: [], problems: [] }
  for (const name of ['output', 'state', 'env'] as const) {
    const target = name === 'output' ? results.outputs : results[name]
    try {
      for (const [key, value] of parseKeyValueFile(await readIfThere(paths[name]))) {
        if (name === 'env' && key.toUpperCase() === 'NODE_OPTIONS') {
          results.problems.push("Can't store NODE_OPTIONS output parameter using '$GITHUB_ENV' command.")
        } else target[key] = value
      }
    } catch (error) {
      results.failures.push(`Unable to process file command '${name}' successfully.`, (error as Error).message)
    }
  }
  results.path = (await readIfThere(paths.path)).split(/\r\n|\r|\n/).filter((line) => line !== '')
  const info = await stat(paths.summary).catch(() => undefined)
  if (info?.isFile() && info.size > SUMMARY_MAX_BYTES) {
    const size = Math.floor(info.size / 1024)
    results.problems.push(`$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k, got ${size}k.`)
  } else if (info?.isFile()) {
    const lines = (await text(createReadStream(paths.summary))).split(/\r\n|\r|\n/)
    results.summary = lines.map((line) => masker.mask(line)).join('\n')
  }
  return results
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
}

/** `NAME=value` and `NAME<<DELIMITER … DELIMITER`, as the runner reads them on Linux: LF only, CR belongs to the value. */
export function* parseKeyValueFile(content: string): Generator<[key: string, value: string]> {
  let index = 0
  const readLine = (): { line: string; ended: boolean } | null => {
    if (index >= content.length) return null
    const lineFeed = content.indexOf('\n', index)
    const end = lineFeed < 0 ? content.length : lineFeed
    const line = content.slice(index, end)
    index = lineFeed < 0 ? end : end + 1
    return { line, ended: lineFeed >= 0 }
  }
  for (let current = readLine(); current !== null; current = readLine()) {
    const { line } = current
    if (line === '') continue
    const equals = line.indexOf('=')
    const heredoc = line.indexOf('<<')
    if (equals >= 0 && (heredoc < 0 || equals < heredoc)) {
      yield [line.slice(0, equals), line.slice(equals + 1)]
    } else if (heredoc >= 0) {
      const key = line.slice(0, heredoc)
      const delimiter = line.slice(heredoc + 2)
      if (key === '' || delimiter === '') {
        throw new Error(`Invalid format '${line}'. Name must not be empty and delimiter must not be empty`)
      }
      const start = index
      let end = index
      for (let next = readLine(); next?.line !== delimiter; next = readLine()) {
        if (next === null) throw new Error(`Invalid value. Matching delimiter not found '${delimiter}'`)
        if (!next.ended) throw new Error('Invalid value. EOF marker missing new line.')
        end = index - 1
      }
      yield [key, end > start ? content.slice(start, end) : '']
    } else {
      throw new Error(`Invalid format '${line}'`)
    }
  }
}
