import protobuf from 'protobufjs'

/** A value of OTLP, in the form that both encodings are brought into. Integers of 64 bits are texts. */
export interface AnyValue {
  readonly stringValue?: string
  readonly boolValue?: boolean
  readonly intValue?: string | number
  readonly doubleValue?: number | string
  readonly bytesValue?: string
  readonly arrayValue?: { readonly values?: readonly AnyValue[] }
  readonly kvlistValue?: { readonly values?: readonly KeyValue[] }
}
export interface KeyValue {
  readonly key: string
  readonly value?: AnyValue | null
}
export interface SpanEvent {
  readonly timeUnixNano?: string | number
  readonly name?: string
  readonly attributes?: readonly KeyValue[]
}
/** Ids are hexadecimal. */
export interface Span {
  readonly traceId?: string
  readonly spanId?: string
  readonly parentSpanId?: string
  readonly name?: string
  readonly kind?: number
  readonly startTimeUnixNano?: string | number
  readonly endTimeUnixNano?: string | number
  readonly attributes?: readonly KeyValue[]
  readonly events?: readonly SpanEvent[]
  readonly status?: { readonly message?: string; readonly code?: number | string }
}
export interface TraceRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] } | null
    readonly scopeSpans?: readonly {
      readonly scope?: { readonly name?: string; readonly version?: string } | null
      readonly spans?: readonly Span[]
    }[]
  }[]
}

/** The messages of OTLP's trace service, as far as they are read; fields that are not named here are skipped. */
const PROTO = `
syntax = "proto3";
package otlp;
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ExportTraceServiceResponse { PartialSuccess partial_success = 1; }
message PartialSuccess { int64 rejected_spans = 1; string error_message = 2; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
message Scope { string name = 1; string version = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  repeated Event events = 11; Status status = 15;
}
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue {
  oneof value {
    string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
    ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7;
  }
}
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
`

const root = protobuf.parse(PROTO).root
const requestType = root.lookupType('otlp.ExportTraceServiceRequest')
const responseType = root.lookupType('otlp.ExportTraceServiceResponse')

/** @throws {Error} for bytes that are no such message. */
export function decodeTraceRequest(body: Uint8Array): TraceRequest {
  const message = requestType.decode(body)
  const request = requestType.toObject(message, { longs: String, bytes: String }) as TraceRequest
  for (const { scopeSpans } of request.resourceSpans ?? [])
    for (const { spans } of scopeSpans ?? []) for (const span of spans ?? []) hexIds(span)
  return request
}

/** The JSON encoding has ids in hexadecimal; this one brings bytes, which were read as base64, to the same. */
function hexIds(span: { traceId?: string; spanId?: string; parentSpanId?: string }): void {
  for (const name of ['traceId', 'spanId', 'parentSpanId'] as const) {
    const id = span[name]
    if (id !== undefined) span[name] = Buffer.from(id, 'base64').toString('hex')
  }
}

/** What is answered: empty when every span was taken. */
export interface PartialSuccess {
  readonly rejectedSpans: number
  readonly errorMessage: string
}

export function encodeTraceResponse(partialSuccess: PartialSuccess | null): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(responseType.encode(partialSuccess === null ? {} : { partialSuccess }).finish())
}

/** The body of a refused request in the protobuf encoding: `google.rpc.Status` with its message. */
export function encodeStatus(message: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(new protobuf.Writer().uint32(18).string(message).finish())
}
