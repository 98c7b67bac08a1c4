// The assertion is that it compiles, here and in a project that has the package installed (consumer.test.ts).
import { type CallTrace, createCountersign, type TracedFailure, type TracedStep, type Tracing } from 'countersign'
import { type OpenTelemetryOptions, openTelemetry } from 'countersign/opentelemetry'

const options: OpenTelemetryOptions = { callers: 'link' }
const tracing: Tracing = openTelemetry(options)
export const traced = [createCountersign({ tracing }), createCountersign({ tracing: 'on' }), openTelemetry()]
// @ts-expect-error: there is no such word.
openTelemetry({ callers: 'on' })
// @ts-expect-error: in code it is a word, too.
createCountersign({ tracing: true })

/** Somebody's own: it counts steps that fail. */
class Failures implements Tracing {
  count = 0

  begin(): CallTrace {
    return {
      within: (work) => work(),
      sent() {},
      end: (outcome: 'ok' | TracedFailure) => {
        if (outcome !== 'ok') this.count++
      },
    }
  }

  async step<Result>(_: TracedStep, work: () => Result | Promise<Result>): Promise<Result> {
    return await work()
  }

  background = this.step

  headers(): Readonly<Record<string, string>> {
    return {}
  }
}
export const own = createCountersign({ tracing: new Failures() })
