import { RATE_LIMIT_RULES } from '../../contract/rate-limits.ts'

export interface RateLimitMetrics {
  /** A request was refused by the row of this id. */
  refused(rule: string): void
  /** A request could not be counted, and was let in. */
  uncounted(): void
  /** The counters in the text format of Prometheus. */
  render(): string
}

export function createRateLimitMetrics(): RateLimitMetrics {
  const refused = new Map(RATE_LIMIT_RULES.map(({ id }) => [id, 0]))
  let uncounted = 0
  return {
    refused: (rule) => void refused.set(rule, (refused.get(rule) ?? 0) + 1),
    uncounted: () => void (uncounted += 1),
    render: () =>
      [
        '# HELP deploy_agent_server_rate_limit_refused_total Requests refused by a row of the rate limits.',
        '# TYPE deploy_agent_server_rate_limit_refused_total counter',
        ...[...refused].map(([rule, count]) => `deploy_agent_server_rate_limit_refused_total{rule="${rule}"} ${count}`),
        '# HELP deploy_agent_server_rate_limit_uncounted_total Requests let in because they could not be counted.',
        '# TYPE deploy_agent_server_rate_limit_uncounted_total counter',
        `deploy_agent_server_rate_limit_uncounted_total ${uncounted}`,
        '',
      ].join('\n'),
  }
}
