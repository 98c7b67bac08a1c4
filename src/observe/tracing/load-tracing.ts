import type { Tracing } from '../../base/tracing.ts'

/**
 * The tracing that a setting asks for, loaded on demand, because most services make no traces. `warn` receives a line
 * if no tracer is registered. Rejects with a `TypeError` of one line if the package for it is not installed.
 */
export async function loadTracing(
  setting: 'off' | 'on' | 'link' | Tracing,
  warn: (text: string) => void,
): Promise<Tracing | undefined> {
  if (setting === 'off') return undefined
  if (typeof setting !== 'string') return setting
  const { trace, ProxyTracerProvider } = await loadApi()
  const provider = trace.getTracerProvider()
  if (provider instanceof ProxyTracerProvider && provider.getDelegateTracer('countersign') === undefined) {
    warn(
      'tracing (COUNTERSIGN_TRACING) is on, but no OpenTelemetry SDK is registered, so that there are no traces; ' +
        'register one before the service is made, such as with: NODE_OPTIONS="--import ./otel.mjs"',
    )
  }
  const { openTelemetry } = await import('../opentelemetry/index.ts')
  return openTelemetry({ callers: setting === 'link' ? 'link' : 'continue' })
}

async function loadApi(): Promise<typeof import('@opentelemetry/api')> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    throw new TypeError(
      'tracing (COUNTERSIGN_TRACING) needs the package @opentelemetry/api, which is not installed: npm install ' +
        '@opentelemetry/api',
      { cause },
    )
  }
}
