import { readFileSync } from 'node:fs'
import { projectFiles } from '../files.ts'
import { inRoot } from '../root.ts'
import { report } from './faults.ts'

const FOLDERS = ['src', 'test', 'testing', 'scripts', 'bench', 'examples']
const TEXT = /\.(?:ts|mts|mjs|js|json|md|yml|yaml)$/
const MAX_COLUMNS = 160

/** A line that holds one long text and nothing else: a break in it would help nobody. */
const ONE_STRING = /^\s*(?:[\w'-]+:\s)?(['"`]).*\1[,)]*$/

/** A rule for one line of text. `files` narrows it. */
type LineRule = { broken: (line: string) => boolean; says: string; files?: RegExp }

// Written so that this file does not break its own rule.
const UNFINISHED = /\b(?:TO(?:DO)|FIX(?:ME))\b/
// A test that needs a server which this machine lacks may leave itself out, with the reason, which the test command prints.
const NOT_RUN = /(?<!context)\.(?:only|skip|todo|runIf|skipIf)\(|context\.skip\(\)/

const LINE_RULES: readonly LineRule[] = [
  { broken: (line) => UNFINISHED.test(line), says: 'finish it, or write it down where work is planned' },
  { broken: (line) => NOT_RUN.test(line), says: 'every test runs, every time', files: /^test\/.*\.test\.ts$/ },
  {
    broken: (line) => line.length > MAX_COLUMNS && !ONE_STRING.test(line),
    says: `longer than ${MAX_COLUMNS} columns`,
    files: /\.m?ts$/,
  },
  { broken: (line) => /\s$/.test(line), says: 'blanks at the end of the line' },
  { broken: (line) => line.includes('\t'), says: 'a tab; indent with two spaces', files: /\.(?:ts|mjs|json|yml)$/ },
]

function faultsOf(path: string): string[] {
  const text = readFileSync(inRoot(path), 'utf8')
  const end = text.endsWith('\n') || text === '' ? [] : [`${path}: no newline at the end of the file`]
  const lines = text.split('\n').flatMap((line, index) =>
    LINE_RULES.filter((rule) => (rule.files === undefined || rule.files.test(path)) && rule.broken(line)).map(
      (rule) => `${path}:${index + 1}: ${rule.says}`,
    ),
  )
  return [...end, ...lines]
}

report(
  FOLDERS.flatMap(projectFiles)
    .filter((path) => TEXT.test(path) && !path.endsWith('package-lock.json') && !path.startsWith('bench/results/'))
    .flatMap(faultsOf),
)
