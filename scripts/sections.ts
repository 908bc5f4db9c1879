import { readFileSync } from 'node:fs'
import { ERROR_CODES, type ErrorCode } from '../src/action/report/error-codes.ts'
import { INPUT_NAMES, inputSpec, OUTPUTS, STATUSES, type Status } from '../src/action/registry.ts'
import { environmentNameOf, OPTIONS, type OptionName } from '../src/platform/options.ts'
import { inRoot } from './root.ts'
import { readErrorExamples, renderExample } from './error-examples.ts'

/** The generated parts of the README, by the name in their markers. */
export function renderSections(): Record<string, string> {
  const examples = Object.fromEntries(EXAMPLES.map((name) => [`example ${name}`, example(name)]))
  return { ...examples, inputs: inputs(), outputs: outputs(), statuses: statuses(), options: options(), errors: errors() }
}

/** Workflows that the README shows: the very files, so that what is copied is what is checked. */
const EXAMPLES = ['deploy', 'preview', 'promote', 'export'] as const

function example(name: (typeof EXAMPLES)[number]): string {
  return `\`\`\`yaml\n${readFileSync(inRoot('examples', 'workflows', `${name}.yml`), 'utf8')}\`\`\``
}

function inputs(): string {
  const rows = INPUT_NAMES.map((name) => {
    const { description, required, defaultExpression, default: fallback, defaultNote } = inputSpec(name)
    const text = defaultExpression ?? fallback
    const standard = text === '' ? (defaultNote ?? '') : `\`${text}\``
    return [anchored('input', name), description, required ? '**required**' : standard]
  })
  return table(['Input', 'Meaning', 'Default'], rows)
}

function outputs(): string {
  return table(
    ['Output', 'Meaning'],
    Object.entries(OUTPUTS).map(([name, { description }]) => [anchored('output', name), description]),
  )
}

const STATUS_MEANINGS: Record<Status, string> = {
  deployed: 'The revision that this step made serves; with `wait: false`, the control plane has accepted it.',
  unchanged:
    '`skip-unchanged` found that the serving revision already has this commit or image; or the schedule is there already; or `mode: sweep` found nothing to remove.',
  removed: 'The preview is gone, with its tracing project; or there was none. After `mode: sweep`: what had to go is gone.',
  skipped: 'There was nothing that this step may do: a pull request from a fork without secrets, or one that changed meanwhile.',
  planned: '`dry-run` printed what would change.',
  exported:
    'The export of `mode: export` is complete; accepted, with `export-wait: false` or a schedule. After a deploy: `deployed`.',
  failed: 'The step could not do what was asked; [`error-code`](#output-error-code) says why.',
  'timed-out': 'The revision did not reach its end within [`timeout`](#input-timeout), or the export its own.',
  cancelled: 'The workflow was cancelled while the step ran.',
  superseded: 'A newer revision of the same deployment took the place of this one.',
  'rolled-back': 'The revision or its smoke test failed, and the source that served before serves again.',
}

function statuses(): string {
  const rows = Object.entries(STATUSES).map(([status, green]) => [
    `\`${status}\``,
    green ? '0' : '1',
    STATUS_MEANINGS[status as Status],
  ])
  return table(['`status`', 'Exit code', 'Meaning'], rows)
}

function options(): string {
  const rows = (Object.keys(OPTIONS) as OptionName[]).map((name) => {
    const { meaning, schema } = OPTIONS[name]
    const fallback = schema.safeParse(undefined)
    const standard = fallback.success && fallback.data !== undefined ? `\`${String(fallback.data)}\`` : ''
    return [`\`--${name}\``, `\`${environmentNameOf(name)}\``, meaning, standard]
  })
  return table(['Option', 'Variable', 'Meaning', 'Default'], rows)
}

/** A heading of its own for each code, so that `#e_build_failed` is its anchor on every site that renders Markdown. */
function errors(): string {
  const examples = readErrorExamples()
  return (Object.keys(ERROR_CODES) as ErrorCode[])
    .flatMap((code) => {
      const { title, meaning, remedy } = ERROR_CODES[code]
      return [`### ${code}`, `**${title}.** ${meaning}`, renderExample(code, examples), `*What to do:* ${remedy}`]
    })
    .join('\n\n')
}

function anchored(kind: string, name: string): string {
  return `<a name="${kind}-${name}"></a>[\`${name}\`](#${kind}-${name})`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
