import type { Latency } from './latency.ts'

/** One line of the table: a figure, and what it is compared with. */
export type Figure = { bench: string; what: string; figure: string; of: string; ratio: string }

type Rates = { rowsPerSecond: number; megabytesPerSecond: number }

/** What each bench writes into bench/results, as far as the table shows it. Older files may lack some of it. */
export type Results = {
  start: {
    size: { bytes: number; gzipBytes: number; toolkitBytes: number }
    timings: { name: string; medianMs: number; ratio: number }[]
  }
  deploy: { medianMs: number; phases: Record<string, number> }
  recovery: { platformMs: number; agentMs: number }
  'control-plane': {
    scale: { deployments: number }
    rows: { name: string; platform: { perSecond: number; p99: number }; ratio: number }[]
    memory?: { afterMb: number }
  }
  stream: {
    results: { name: string; firstMs: number; eventsPerSecond: number }[]
    ratios: { firstEvent: number; eventsPerSecond: number }
  }
  'rate-limits': { results: { limits: string; perSecond: number; p99: number; ratio: number }[] }
  ingest: {
    results: {
      size: string
      way: string
      runs: number
      perSecond: number
      megabytesPerSecond: number
      ratio: number
      memory?: { lastMb: number } | null
    }[]
  }
  export: {
    results: { rows: number; bare: Rates; oneDay: Rates; fourDays: Rates; peaks?: { exportMegabytes: number } }[]
    api?: { idle: Record<string, Latency>; exporting: Record<string, Latency> } | null
  }
  scale: {
    rows: number
    throughput: { processes: number; rowsPerSecond: number; toOne: number }[]
    takeover?: { exportMs: number; agentMs: number | null }
  }
}

export type BenchName = keyof Results

/** How the results of each bench become lines of the table, in the order of the table. */
export const FIGURES: { [Name in BenchName]: (results: Results[Name]) => Omit<Figure, 'bench'>[] } = {
  start: ({ size, timings }) => [
    {
      what: 'size of the bundle',
      figure: `${kilo(size.bytes)} kB`,
      of: 'the toolkit alone',
      ratio: times(size.bytes / size.toolkitBytes),
    },
    ...timings.map(({ name, medianMs, ratio }, index) => ({
      what: `start of ${name}`,
      figure: `${medianMs.toFixed(0)} ms`,
      of: index === 0 ? '' : 'an empty script',
      ratio: index === 0 ? '' : times(ratio),
    })),
  ],
  deploy: ({ medianMs, phases }) => [
    { what: 'deploy of the example, from request to DEPLOYED', figure: seconds(medianMs), of: '', ratio: '' },
    ...['BUILDING', 'DEPLOYING'].map((phase) => ({
      what: `of it, ${phase}`,
      figure: seconds(phases[phase] ?? 0),
      of: 'the whole deploy',
      ratio: percent((phases[phase] ?? 0) / medianMs),
    })),
  ],
  recovery: ({ platformMs, agentMs }) => [
    { what: 'after kill -9: the platform answers again', figure: seconds(platformMs), of: '', ratio: '' },
    { what: 'after kill -9: the agent answers again', figure: seconds(agentMs), of: '', ratio: '' },
  ],
  'control-plane': ({ scale, rows, memory }) => [
    ...rows.map(({ name, platform, ratio }) => ({
      what: `${name}, of ${scale.deployments}`,
      figure: `${platform.perSecond.toFixed(0)} /s, p99 ${platform.p99.toFixed(0)} ms`,
      of: 'a bare handler',
      ratio: percent(ratio),
    })),
    ...(memory === undefined
      ? []
      : [{ what: 'memory of the platform under this load', figure: `${memory.afterMb.toFixed(0)} MB`, of: '', ratio: '' }]),
  ],
  stream: ({ results, ratios }) => {
    const through = results.find(({ name }) => name === 'through')
    if (through === undefined) return []
    return [
      {
        what: 'first event of a stream through the proxy',
        figure: `${through.firstMs.toFixed(0)} ms`,
        of: 'the agent directly',
        ratio: times(ratios.firstEvent),
      },
      {
        what: 'events through the proxy',
        figure: `${through.eventsPerSecond.toFixed(0)} /s`,
        of: 'the agent directly',
        ratio: percent(ratios.eventsPerSecond),
      },
    ]
  },
  'rate-limits': ({ results }) =>
    results.map(({ limits, perSecond, p99, ratio }) => ({
      what: `requests with rate limits ${limits === 'off' ? 'off' : `in ${limits}`}`,
      figure: `${perSecond.toFixed(0)} /s, p99 ${p99.toFixed(0)} ms`,
      of: limits === 'off' ? '' : 'off',
      ratio: limits === 'off' ? '' : percent(ratio),
    })),
  ingest: ({ results }) =>
    results.map(({ size, way, runs, perSecond, megabytesPerSecond, ratio, memory }) => ({
      what: `${runs} runs of ${size} by ${way}`,
      figure: `${perSecond.toFixed(0)} /s, ${megabytesPerSecond.toFixed(0)} MB/s${memory ? `, ${memory.lastMb.toFixed(0)} MB of memory` : ''}`,
      of: way === 'COPY' ? '' : "PostgreSQL's COPY",
      ratio: way === 'COPY' ? '' : percent(ratio),
    })),
  export: ({ results, api }) => [
    ...results.flatMap(({ rows, bare, oneDay, fourDays, peaks }) =>
      (
        [
          ['one day', oneDay],
          ['four days', fourDays],
        ] as const
      ).map(([days, rates]) => ({
        what: `export of ${rows} runs, ${days}`,
        figure:
          `${rates.rowsPerSecond.toFixed(0)} rows/s, ${rates.megabytesPerSecond.toFixed(0)} MB/s` +
          (peaks === undefined || days !== 'one day' ? '' : `, ${peaks.exportMegabytes.toFixed(0)} MB of memory`),
        of: 'COPY, then DuckDB, by hand',
        ratio: percent(rates.rowsPerSecond / bare.rowsPerSecond),
      })),
    ),
    ...latencies(api),
  ],
  scale: ({ rows, throughput, takeover }) => [
    ...throughput.map(({ processes, rowsPerSecond, toOne }) => ({
      what: `export of ${rows} runs by ${processes} ${processes === 1 ? 'process' : 'processes'}`,
      figure: `${rowsPerSecond.toFixed(0)} rows/s`,
      of: processes === 1 ? '' : 'one process',
      ratio: processes === 1 ? '' : times(toOne),
    })),
    ...(takeover === undefined
      ? []
      : [{ what: 'after kill -9 of one: its export run is taken up', figure: seconds(takeover.exportMs), of: '', ratio: '' }]),
    ...(typeof takeover?.agentMs !== 'number'
      ? []
      : [{ what: 'after kill -9 of one: its agent serves again', figure: seconds(takeover.agentMs), of: '', ratio: '' }]),
  ],
}

/** The API while an export runs, against the same API while none does. */
function latencies(api: Results['export']['api']): Omit<Figure, 'bench'>[] {
  if (!api) return []
  return Object.entries(api.exporting).flatMap(([kind, beside]) => {
    const before = api.idle[kind]
    if (before === undefined) return []
    return [
      {
        what: `${kind} during an export: p99`,
        figure: `${beside.p99.toFixed(0)} ms`,
        of: 'no export',
        ratio: times(beside.p99 / before.p99),
      },
    ]
  })
}

function kilo(bytes: number): string {
  return (bytes / 1000).toFixed(0)
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}

function times(ratio: number): string {
  return `${ratio.toFixed(2)} times`
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio < 0.1 ? 1 : 0)} %`
}
