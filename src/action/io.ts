import { accessSync, appendFileSync, constants, statSync } from 'node:fs'
import { getInput, getState, saveState, setOutput, setSecret } from '@actions/core'
import { masksOf, type Redactor } from './masks.ts'
import { parseSecretLines } from './parse/secret-lines.ts'
import { INPUT_NAMES, inputSpec, type InputName, type OutputName, type StateKey } from './registry.ts'
import type { RawInputs } from './inputs.ts'

/** The runner's side of the step: inputs, outputs, state, masks and the job summary. No other file talks to it. */
export type Io = {
  /** All inputs as texts. Everything in them that is sensitive has been masked when this returns. */
  readInputs: () => RawInputs
  setOutput: (name: OutputName, value: string) => void
  /** Why an output could not be written, once one could not. */
  outputProblem: () => string | undefined
  /** False when the runner's state file could not be written. */
  saveState: (key: StateKey, value: string) => boolean
  getState: (key: StateKey) => string
  /** Appends to the job summary; throws when the file cannot be written. */
  writeSummary: (markdown: string) => void
}

export function createIo({ env, redactor }: { env: NodeJS.ProcessEnv; redactor: Redactor }): Io {
  let apiKey = ''
  let problem = unwritable(env['GITHUB_OUTPUT'])
  const mask = (value: string): void => {
    const masks = masksOf(value)
    redactor.add(masks)
    for (const part of masks) setSecret(part)
  }
  return {
    readInputs: () => {
      apiKey = getInput('api-key')
      // The key itself, however short it is: nothing else may show it.
      if (apiKey !== '') {
        setSecret(apiKey)
        redactor.add([apiKey])
      }
      for (const value of parseSecretLines(read('secrets')).sensitive) mask(value)
      for (const name of INPUT_NAMES) if (isCredential(name)) mask(read(name))
      for (const name of INPUT_NAMES) if (inputSpec(name).kind === 'url') mask(credentialsOf(read(name)))
      return Object.fromEntries(INPUT_NAMES.map((name) => [name, read(name)])) as RawInputs
    },
    setOutput: (name, value) => {
      try {
        setOutput(name, apiKey === '' ? value : value.replaceAll(apiKey, '***'))
      } catch (error) {
        problem ??= describe(error)
      }
    },
    outputProblem: () => problem,
    saveState: (key, value) => {
      try {
        saveState(key, value)
        return true
      } catch {
        return false
      }
    },
    getState: (key) => getState(key),
    writeSummary: (markdown) => {
      const path = env['GITHUB_STEP_SUMMARY'] ?? ''
      if (path !== '') appendFileSync(path, `${markdown}\n`)
    },
  }
}

/** A secret that is one value; the key is masked by itself, and variables by their lines. */
function isCredential(name: InputName): boolean {
  const { secret, kind } = inputSpec(name)
  return secret && kind === 'text' && name !== 'api-key'
}

/** A value of several lines keeps its white space: it may be part of a secret. */
function read(name: InputName): string {
  const text = getInput(name, { trimWhitespace: inputSpec(name).kind !== 'lines' })
  return text.trim() === '' ? '' : text
}

/** The password, or what stands in its place in an address of http; a user name of ssh is none. */
function credentialsOf(address: string): string {
  const [, scheme = '', user = '', password] = /^([a-z+]*):?\/\/([^/?#:]*)(?::([^/?#]*))?@/i.exec(address) ?? []
  return password ?? (scheme.toLowerCase() === 'ssh' ? '' : user)
}

function unwritable(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined
  try {
    accessSync(path, constants.W_OK)
    return statSync(path).isFile() ? undefined : `${path} is not a file`
  } catch (error) {
    return describe(error)
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
