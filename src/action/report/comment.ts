import { exportSection } from '../export/section.ts'
import { markerOf } from '../github/comment.ts'
import { rollbackSection } from '../rollback/section.ts'
import { clipBytes, link } from './markdown.ts'
import { smokeSection } from './smoke-section.ts'
import { facts, failureBlock, heading, type SummaryData, timeline } from './summary.ts'

/** GitHub takes 65,536 characters; no character has less than one byte. */
const COMMENT_MAX_BYTES = 65_000

/** The sticky comment of a step, as GitHub-flavoured Markdown. `data` as for the job summary. */
export function renderComment({ data, key, runUrl }: { data: SummaryData; key: string; runUrl: string | undefined }): string {
  const sections = [
    `${markerOf(key)}\n${STARTED_BEFORE}${Math.round(data.startedAt)}${STARTED_AFTER}`,
    heading(data),
    failureBlock(data),
    facts(data),
    folded('Timeline', timeline(data)),
    folded('Smoke test', smokeSection(data.smokeTest)),
    folded('Rollback', rollbackSection(data.rollback, data.endedAt)),
    folded('Export', exportSection(data.export)),
    ...(runUrl === undefined ? [] : [link('Log and summary of the workflow run', runUrl)]),
  ]
  return clipBytes(
    `${sections
      .filter((section) => section !== '')
      .map(withoutMentions)
      .join('\n\n')}\n`,
    COMMENT_MAX_BYTES,
  )
}

const STARTED_BEFORE = '<!-- started: '
const STARTED_AFTER = ' -->'

/** When the step began that wrote a comment; epoch milliseconds. */
export function startedAtOf(body: string): number | undefined {
  const [, started] = /<!-- started: (\d{1,15}) -->/.exec(body.slice(0, 2000)) ?? []
  return started === undefined ? undefined : Number(started)
}

function folded(title: string, section: string): string {
  // Its own heading stands in the summary of the element already.
  const content = section.replace(/^#### [^\n]*\n\n/, '')
  const [, heading = title] = /^#### ([^\n]*)/.exec(section) ?? []
  return content === '' ? '' : `<details><summary>${heading}</summary>\n\n${content}\n\n</details>`
}

/**
 * Whoever is named in a comment gets mail, and an issue that is named gets a note, also where the sign is an entity: a character of
 * no width keeps the two apart. In code GitHub looks for neither.
 */
function withoutMentions(markdown: string): string {
  return markdown.replace(/<code>.*?<\/code>|<pre>.*?<\/pre>|&#(?:64|35);/gs, (part) =>
    part.startsWith('<') ? part : `${part}&#8203;`,
  )
}
