/** Numbers about bulk export since this process began, for Prometheus. */
export interface ExportMetrics {
  add(name: CounterName, labels?: Readonly<Record<string, string>>, value?: number): void
  set(name: GaugeName, value: number): void
  /** In Prometheus' text format. */
  renderMetrics(): string
}

const COUNTERS = {
  export_rows_total: 'Runs written into files that are in a bucket.',
  export_bytes_total: 'Bytes of files that are in a bucket.',
  export_files_total: 'Files that are in a bucket.',
  export_text_bytes_total: 'Bytes of text that were turned into files.',
  export_late_rows_total: 'Runs that came after their export run had begun.',
  export_attempts_total: 'Attempts of export runs that ended, by their outcome.',
  export_exports_total: 'Exports that ended, by their status.',
  export_spawned_total: 'Exports that schedules spawned.',
  export_reclaimed_total: 'Export runs that were taken back from workers that were lost.',
  export_seconds_total: 'Seconds spent on export runs, by what they were spent on.',
} as const
const GAUGES = { export_runs_in_hand: 'Export runs that this process works on now.' } as const
type CounterName = keyof typeof COUNTERS
type GaugeName = keyof typeof GAUGES

const PREFIX = 'deploy_agent_server_'

export function createExportMetrics(): ExportMetrics {
  const counters = new Map<CounterName, Map<string, number>>()
  const gauges = new Map<GaugeName, number>()
  for (const name of Object.keys(COUNTERS) as CounterName[]) counters.set(name, new Map())
  for (const name of Object.keys(GAUGES) as GaugeName[]) gauges.set(name, 0)
  return {
    add: (name, labels = {}, value = 1) => {
      const series = counters.get(name) as Map<string, number>
      const key = renderLabels(labels)
      series.set(key, (series.get(key) ?? 0) + value)
    },
    set: (name, value) => void gauges.set(name, value),
    renderMetrics: () => {
      const lines: string[] = []
      for (const [name, series] of counters) {
        lines.push(`# HELP ${PREFIX}${name} ${COUNTERS[name]}`, `# TYPE ${PREFIX}${name} counter`)
        if (series.size === 0 && !LABELLED.has(name)) lines.push(`${PREFIX}${name} 0`)
        for (const [labels, value] of series) lines.push(`${PREFIX}${name}${labels} ${value}`)
      }
      for (const [name, value] of gauges) {
        lines.push(`# HELP ${PREFIX}${name} ${GAUGES[name]}`, `# TYPE ${PREFIX}${name} gauge`, `${PREFIX}${name} ${value}`)
      }
      return `${lines.join('\n')}\n`
    },
  }
}

/** Their series appear with their first event: there is none without labels. */
const LABELLED: ReadonlySet<CounterName> = new Set(['export_attempts_total', 'export_exports_total', 'export_seconds_total'])

function renderLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/["\\\n]/g, '_')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
