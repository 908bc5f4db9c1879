import {
  type Area,
  type Evidence,
  type EvidenceKind,
  FACT_SOURCES,
  type Named,
  type RouteFidelity,
} from '../src/contract/fidelity/evidence.ts'
import { EVERY_BODY, EVERY_ROUTE } from '../src/contract/fidelity/every-route.ts'
import { AREAS, NOT_THE_PLATFORM, READS } from '../src/contract/fidelity/fidelity.ts'
import { VALUES } from '../src/contract/fidelity/values.ts'

const KINDS: Readonly<Record<EvidenceKind, string>> = {
  specification: 'The specification says so; the section stands there.',
  documented: "The hosted service's own descriptions and guides say so.",
  observed: 'It was seen in answers of the hosted service.',
  inferred: 'Clients of the hosted service that others wrote count on it.',
  chosen: 'Nobody says. It is as it is for the reason that stands there.',
}

/** docs/fidelity.md: how well each route, field and status of the contract is known. */
export function renderFidelityPage(): string {
  return `${[
    '# Fidelity',
    '<!-- Written by npm run docs from src/contract/fidelity; npm run check proves that nothing is left out. -->',
    'How well each route, field and status of the contract is known, and from where. Where several sources agree, the strongest stands here.',
    table(
      ['Evidence', 'Meaning', 'How often'],
      Object.entries(KINDS).map(([kind, meaning]) => [`\`${kind}\``, meaning, String(countOf(kind))]),
    ),
    table(
      ['Source', 'What it is'],
      Object.entries(FACT_SOURCES).map(([source, what]) => [source, what]),
    ),
    'The names are those of the specification; with `--dialect vendor` the platform answers with those of the hosted service. The rows of the' +
      '\ntable of rate limits are all `specification` 8.3; how they are matched is on [their page](rate-limits.md).',
    '## What the platform is not',
    NOT_THE_PLATFORM.map((sentence) => `- ${sentence}`).join('\n'),
    '## Statuses and other words',
    table(
      ['List', 'Words', 'Evidence', 'Source'],
      Object.values(VALUES).flatMap(({ title, values }) => namedRows(title, values)),
    ),
    '## Answers of every route',
    'These hold for every route in `/openapi.json`; the second table for those with a body.',
    table(['Status', 'Evidence', 'Source'], answerRows(EVERY_ROUTE)),
    table(['Status', 'Evidence', 'Source'], answerRows(EVERY_BODY)),
    ...AREAS.flatMap(renderArea),
    '## Read liberally',
    "A client reads these objects with more tolerance than they are written with; the evidence is that of the object's table above: " +
      `${Object.keys(READS)
        .map((name) => `\`${name}\``)
        .join(', ')}.`,
  ].join('\n\n')}\n`
}

function renderArea({ title, routes, objects }: Area): string[] {
  return [
    `## ${title}`,
    table(
      ['Route', 'Part', 'Evidence', 'Source'],
      Object.entries(routes).flatMap(([route, fidelity]) => routeRows(route, fidelity)),
    ),
    table(
      ['Object', 'Fields', 'Evidence', 'Source'],
      Object.values(objects).flatMap(({ title: object, fields }) => namedRows(object, fields)),
    ),
  ]
}

function routeRows(route: string, { route: itself, answers, query, body, answer }: RouteFidelity): string[][] {
  return [
    [`\`${route}\``, 'route', ...cells(itself)],
    ...Object.entries(answers).map(([status, evidence]) => ['', status, ...cells(evidence)]),
    ...partRows('query', query),
    ...partRows('body', body),
    ...partRows('answer', answer),
  ]
}

function partRows(part: string, named: Named = []): string[][] {
  return named.map(([evidence, list]) => ['', `${part}: ${words(list)}`, ...cells(evidence)])
}

/** Rows with the same evidence are one. */
function namedRows(title: string, named: Named): string[][] {
  const rows = new Map<string, { evidence: Evidence; list: string[] }>()
  for (const [evidence, list] of named) {
    const key = JSON.stringify(evidence)
    rows.set(key, { evidence, list: [...(rows.get(key)?.list ?? []), ...list] })
  }
  return [...rows.values()].map(({ evidence, list }, index) => [
    index === 0 ? `**${title}**` : '',
    words(list),
    ...cells(evidence),
  ])
}

function answerRows(answers: Readonly<Record<number, Evidence>>): string[][] {
  return Object.entries(answers).map(([status, evidence]) => [status, ...cells(evidence)])
}

function cells({ kind, source, note }: Evidence): string[] {
  const where = source.replace(/^specification /, '')
  return [`\`${kind}\``, note === undefined ? where : `${where}; ${note}`]
}

function words(list: readonly string[]): string {
  return list.map((word) => `\`${word}\``).join(', ')
}

function countOf(kind: string): number {
  const ofNamed = (named: Named = []) =>
    named.reduce((sum, [evidence, list]) => sum + (evidence.kind === kind ? list.length : 0), 0)
  const ofAnswers = (answers: Readonly<Record<number, Evidence>>) =>
    Object.values(answers).filter((evidence) => evidence.kind === kind).length
  const routes = AREAS.flatMap((area) => Object.values(area.routes))
  const objects = AREAS.flatMap((area) => Object.values(area.objects))
  return (
    routes.filter(({ route }) => route.kind === kind).length +
    sum(routes.map(({ answers, query, body, answer }) => ofAnswers(answers) + ofNamed(query) + ofNamed(body) + ofNamed(answer))) +
    sum(objects.map(({ fields }) => ofNamed(fields))) +
    sum(Object.values(VALUES).map(({ values }) => ofNamed(values))) +
    ofAnswers(EVERY_ROUTE) +
    ofAnswers(EVERY_BODY)
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')
}
