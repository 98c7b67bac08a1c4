import { type Context, context, propagation, type Span, SpanKind, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { afterEach } from 'vitest'
import { atFileEnd } from './file-end.ts'

const exporter = new InMemorySpanExporter()

/**
 * Registers the SDK in this process for one file, as an application does, with an exporter that keeps spans until the
 * test is over.
 */
export function registerSdk(): void {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
  afterEach(() => exporter.reset())
  atFileEnd(() => {
    for (const api of [trace, context, propagation]) api.disable()
  })
}

/** The spans that have ended. Those of a call may end a moment after its answer has arrived. */
export function endedSpans(): readonly ReadableSpan[] {
  return exporter.getFinishedSpans()
}

/** The ended spans of calls to the service, in the order of their ends. */
export function callSpans(): readonly ReadableSpan[] {
  return endedSpans().filter(({ kind }) => kind === SpanKind.SERVER)
}

/** The ended spans that a span is the parent of. */
export function childrenOf(parent: ReadableSpan): readonly ReadableSpan[] {
  return endedSpans().filter((span) => span.parentSpanContext?.spanId === parent.spanContext().spanId)
}

/** Names of the spans that a span is the parent of, without repetitions. */
export function childNames(parent: ReadableSpan): readonly string[] {
  return [...new Set(childrenOf(parent).map(({ name }) => name))]
}

/** Does something as a client that makes traces itself, in a span of its own. */
export async function inClientSpan<Result>(work: (span: Span) => Promise<Result>): Promise<Result> {
  const tracer = trace.getTracer('a client of the test')
  return await tracer.startActiveSpan('client', { kind: SpanKind.CLIENT }, async (span) => {
    try {
      return await work(span)
    } finally {
      span.end()
    }
  })
}

/** The headers by which a client passes its trace on. */
export function traceHeaders(active: Context = context.active()): Record<string, string> {
  const headers: Record<string, string> = {}
  propagation.inject(active, headers)
  return headers
}

/**
 * Everything that a span says, as text: what an exporter could send anywhere. Without ids and times, which are random
 * digits.
 */
export function textOf(span: ReadableSpan): string {
  const { name, attributes, status, resource, instrumentationScope } = span
  const events = span.events.map(({ name, attributes }) => ({ name, attributes }))
  const links = span.links.map(({ context, attributes }) => ({ state: context.traceState?.serialize(), attributes }))
  const states = [span.spanContext(), span.parentSpanContext].map((one) => one?.traceState?.serialize())
  return JSON.stringify({
    ...{ name, attributes, events, links, status, states },
    resource: resource.attributes,
    scope: instrumentationScope,
  })
}
