import { describe, expect, it } from 'vitest'
import { createExportMetrics } from '../../../src/platform/bulk-export/metrics.ts'

/** A line of Prometheus' text format: a comment, or a series with its value. */
const LINE = /^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{[a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*\})? -?[\d.e+-]+)$/

describe('the metrics of bulk export', () => {
  it('add up, by their labels, in the text format of Prometheus', () => {
    const metrics = createExportMetrics()
    metrics.add('export_rows_total', {}, 5)
    metrics.add('export_rows_total', {}, 7)
    metrics.add('export_attempts_total', { outcome: 'completed' })
    metrics.add('export_attempts_total', { outcome: 'a "strange"\none\\' })
    metrics.set('export_runs_in_hand', 2)
    const text = metrics.renderMetrics()
    const lines = text.trimEnd().split('\n')
    expect(text.endsWith('\n')).toBe(true)
    expect(lines.filter((line) => !LINE.test(line))).toEqual([])
    expect(lines).toContain('deploy_agent_server_export_rows_total 12')
    expect(lines).toContain('deploy_agent_server_export_attempts_total{outcome="completed"} 1')
    expect(lines).toContain('deploy_agent_server_export_attempts_total{outcome="a _strange__one_"} 1')
    expect(lines).toContain('deploy_agent_server_export_runs_in_hand 2')
    expect(lines).toContain('deploy_agent_server_export_spawned_total 0')
  })
})
