import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type TextMapGetter,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { headerOf, type RequestContext } from '../../base/request.ts'
import type { CallTrace, TracedCall, TracedFailure, TracedStep, Tracing } from '../../base/tracing.ts'
import { version } from '../../base/version.ts'
import { CountersignError, reasons } from '../../shared/errors.ts'

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /**
   * What a call does if the caller's headers name a trace. `continue`: its span belongs to that trace, and is sampled
   * if the caller's is, as far as the SDK's sampler uses that. `link`: it begins a trace of its own that links to
   * the caller's, so that callers who are not trusted cannot decide what is sampled. Default `continue`.
   */
  readonly callers?: 'continue' | 'link'
}

/**
 * Makes traces of calls for the option `tracing`, through the API of OpenTelemetry. What becomes of them is up to the
 * SDK that the process registers, before or after this; without one, nothing does. Throws a `TypeError` if an option
 * does not fit.
 */
export function openTelemetry({ callers = 'continue' }: OpenTelemetryOptions = {}): Tracing {
  if (callers !== 'continue' && callers !== 'link') throw new TypeError('callers must be continue or link')
  const tracer = trace.getTracer('countersign', version)

  const spanOf = async <Result>(
    step: TracedStep,
    parent: Context,
    work: () => Result | Promise<Result>,
  ): Promise<Result> => {
    const { name, ...options } = described(step)
    const span = tracer.startSpan(name, options, parent)
    try {
      return await context.with(trace.setSpan(parent, span), work)
    } catch (thrown) {
      // Neither the error nor its message: it may contain what a caller sent.
      span.setAttribute('error.type', errorTypeOf(thrown))
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw thrown
    } finally {
      span.end()
    }
  }

  return {
    begin({ method, protocol, request }) {
      const { parent, links } = originOf(request, callers)
      const attributes = {
        'rpc.system.name': systems[protocol],
        'rpc.method': method,
        'countersign.protocol': protocol,
      }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes, links }, parent)
      return callOf(span, trace.setSpan(parent, span), protocol)
    },
    async step(step, work) {
      // A span that has ended can still be the active one: of a call that is not awaited, or of what started the
      // process.
      if (trace.getActiveSpan()?.isRecording() !== true) return await work()
      return await spanOf(step, context.active(), work)
    },
    background: (step, work) => spanOf(step, ROOT_CONTEXT, work),
    headers() {
      const headers: Record<string, string> = {}
      const active = trace.getActiveSpan()?.spanContext()
      if (active === undefined) return headers
      // Without the trace state and the baggage: callers wrote them, and the receiver may belong to someone else.
      const { traceId, spanId, traceFlags } = active
      propagation.inject(trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags }), headers)
      return headers
    },
  }
}

/** What the span of a call belongs to: its parent, if the context has one, and what it links to. */
function originOf(request: RequestContext, callers: 'continue' | 'link') {
  const here = context.active()
  const active = trace.getSpan(here)
  // Of the application, or of an instrumentation of HTTP, which has read the headers. One that has ended is a
  // left-over of the context that the server was started in.
  const isSampled = active !== undefined && (active.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0
  if (active !== undefined && (active.isRecording() || !isSampled)) return { parent: here, links: [] }
  const root = trace.deleteSpan(here)
  const caller = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, request, headerGetter))
  // Only the name of the trace is taken over. Baggage is the caller's text, and would travel on from here.
  if (caller === undefined) return { parent: root, links: [] }
  if (callers === 'continue') return { parent: trace.setSpanContext(root, caller), links: [] }
  const { traceId, spanId, traceFlags } = caller
  return { parent: root, links: [{ context: { traceId, spanId, traceFlags, isRemote: true } }] }
}

const headerGetter: TextMapGetter<RequestContext> = {
  get: (request, name) => headerOf(request, name),
  // For propagators that look for headers by a prefix, to read baggage.
  keys: () => [],
}

/** Most messages of one stream that its span has an event for. */
const maxMessageEvents = 100

/** The span of one call. */
function callOf(span: Span, spanContext: Context, protocol: TracedCall['protocol']): CallTrace {
  let sent = 0
  const describe = (outcome: 'ok' | TracedFailure): void => {
    span.setAttributes(statusOf(protocol, outcome))
    if (sent > 0) span.setAttribute('countersign.messages.sent', sent)
    if (outcome === 'ok' || outcome.code === 'canceled') return
    span.setAttribute('error.type', outcome.reason === undefined ? outcome.code : errorTypeOf(outcome))
    if (serverFaults.has(outcome.code)) span.setStatus({ code: SpanStatusCode.ERROR })
  }
  return {
    within: (work) => context.with(spanContext, work),
    sent() {
      sent++
      if (sent <= maxMessageEvents) span.addEvent('message sent', { 'countersign.message.number': sent })
    },
    end(outcome) {
      if (span.isRecording()) describe(outcome)
      span.end()
    },
  }
}

/** `rpc.system.name` of each protocol. The conventions know no name for REST and for endpoints of Better Auth. */
const systems: Readonly<Record<TracedCall['protocol'], string>> = {
  connect: 'connectrpc',
  grpc: 'grpc',
  'grpc-web': 'grpc',
  rest: 'rest',
  'better-auth': 'better-auth',
}

/**
 * Codes that are the server's fault: the conventions for RPC set the status of a server's span to an error for these
 * only.
 */
const serverFaults: ReadonlySet<string> = new Set([
  'unknown',
  'deadline_exceeded',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
])

/** The status that the caller sees, as its protocol writes it. */
function statusOf(protocol: TracedCall['protocol'], outcome: 'ok' | TracedFailure): Attributes {
  if (protocol === 'grpc' || protocol === 'grpc-web') {
    if (outcome === 'ok') return { 'rpc.status_code': 'OK' }
    // gRPC spells one word otherwise.
    return { 'rpc.status_code': outcome.code === 'canceled' ? 'CANCELLED' : outcome.code.toUpperCase() }
  }
  if (outcome === 'ok') return {}
  if (protocol === 'connect') return { 'rpc.status_code': outcome.code }
  return outcome.httpStatus === undefined ? {} : { 'http.response.status_code': outcome.httpStatus }
}

/**
 * A reason of the protocol's list. Anything else is left out: an application or a library can throw any text.
 */
function errorTypeOf(thrown: unknown): string {
  return thrown instanceof CountersignError && Object.hasOwn(reasons, thrown.reason) ? thrown.reason : '_OTHER'
}

/** Span name and attributes of a step. */
function described(step: TracedStep): SpanOptions & { readonly name: string } {
  switch (step.kind) {
    case 'store':
      return {
        name: step.operation,
        // An embedded store is part of the process.
        kind: step.system === 'sqlite' ? SpanKind.INTERNAL : SpanKind.CLIENT,
        attributes: { 'db.system.name': step.system, 'db.operation.name': step.operation },
      }
    case 'verification':
      return {
        name: `verify ${step.adapterId}`,
        kind: SpanKind.INTERNAL,
        attributes: { 'countersign.wallet.adapter': step.adapterId },
      }
    case 'evm rpc':
      return {
        name: step.method,
        kind: SpanKind.CLIENT,
        attributes: {
          'rpc.system.name': 'jsonrpc',
          'rpc.method': step.method,
          'jsonrpc.protocol.version': '2.0',
          'countersign.chain.id': step.chainId,
        },
      }
    case 'application':
      return { name: step.name, kind: SpanKind.INTERNAL }
    case 'webhook':
      return { name: 'deliver audit event', kind: SpanKind.CLIENT, attributes: { 'http.request.method': 'POST' } }
  }
}
