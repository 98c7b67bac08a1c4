// An application that traces its calls: docs/tracing.md. Start it with --import ./otel.mjs.
import { createCountersign } from 'countersign'
import { openTelemetry } from 'countersign/opentelemetry'

const countersign = await createCountersign({ tracing: openTelemetry({ callers: 'link' }) })
await countersign.listen()
