/**
 * How well each part of the contract is known. `specification`: it is written there. `documented`: the hosted service's own
 * descriptions and guides say so. `observed`: seen in its answers. `inferred`: its other clients count on it. `chosen`: nobody says;
 * this project decided.
 */
export type EvidenceKind = 'specification' | 'documented' | 'observed' | 'inferred' | 'chosen'

/** Where what is known of the hosted service comes from, beside the specification. */
export const FACT_SOURCES = {
  'control plane description': 'the OpenAPI description of the hosted control plane, version 0.1.0, of 2026',
  'control plane reference': 'the reference pages of the hosted control plane, newer than its description',
  'main API description': 'the OpenAPI description of the hosted main API, of July 2026',
  'agent server description': 'the OpenAPI description of the agent server 0.5.26',
  guides: 'the guides of the hosted service',
  'real answers': 'answers that people received and published',
  'command line': "the ecosystem's own command line and its tests",
  'Terraform provider': "the service's official Terraform provider and its tests",
  'sample pipeline': "the service's official sample pipeline and its tests",
  'client library': "the ecosystem's tracing library",
  'other tools': 'tools that other people wrote against the hosted service',
} as const
export type FactSource = keyof typeof FACT_SOURCES

export interface Evidence {
  readonly kind: EvidenceKind
  /** A section of the specification, a source of `FACT_SOURCES`, or the reason of a choice. */
  readonly source: string
  /** What else one should know, as where the service and the specification differ. */
  readonly note?: string
}

export const specification = (section: string, note?: string): Evidence =>
  evidence('specification', `specification ${section}`, note)
export const documented = (source: FactSource, note?: string): Evidence => evidence('documented', source, note)
export const observed = (source: FactSource, note?: string): Evidence => evidence('observed', source, note)
export const inferred = (source: FactSource, note?: string): Evidence => evidence('inferred', source, note)
/** Nobody says: `reason` is why it is as it is. */
export const chosen = (reason: string): Evidence => evidence('chosen', reason, undefined)

function evidence(kind: EvidenceKind, source: string, note: string | undefined): Evidence {
  return { kind, source, ...(note === undefined ? {} : { note }) }
}

/** Names that share one evidence. */
export type Named = readonly (readonly [Evidence, readonly string[]])[]

/** An object of the contract: the schema's name there, and its fields, those of inner objects with a dot. */
export interface ObjectFidelity {
  readonly title: string
  readonly fields: Named
}

/** A route: that it exists, what it answers, and what of a request only it takes. */
export interface RouteFidelity {
  readonly route: Evidence
  /** By HTTP status; the statuses that every route may answer stand apart. */
  readonly answers: Readonly<Record<number, Evidence>>
  readonly query?: Named
  /** Fields of a body or an answer that is no object of the contract. */
  readonly body?: Named
  readonly answer?: Named
}

/** A part of the service. The keys of `routes` are like `GET /v2/deployments`, those of `objects` are names of schemas in `src/contract`. */
export interface Area {
  readonly title: string
  readonly routes: Readonly<Record<string, RouteFidelity>>
  readonly objects: Readonly<Record<string, ObjectFidelity>>
}
