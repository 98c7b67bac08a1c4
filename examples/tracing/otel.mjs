// An SDK that prints spans, loaded before the service: docs/tracing.md.
import { BatchSpanProcessor, ConsoleSpanExporter, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new ConsoleSpanExporter())] })
provider.register()
// Without this, the spans of the last seconds before a stop are lost.
process.once('beforeExit', () => provider.shutdown())
