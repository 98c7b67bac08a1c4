import type { CountersignOptions } from '../../config.ts'
import type { Countersign } from '../../countersign.ts'
import type { MetricValues } from '../../metrics/summed-metrics.ts'

/** What a worker is to run. */
export interface WorkerStart {
  /** Its number among the workers, from 1. A worker that takes the place of another has the same. */
  readonly number: number
  /** The settings of the arguments, which take precedence over environment variables. */
  readonly options: CountersignOptions
  /** Hosts of this machine in its local networks, with `--lan`. */
  readonly lanHosts: readonly string[] | undefined
  /** Whether it leaves out warnings until it is ready, because another worker has said the same. */
  readonly quiet: boolean
}

/** What the process that started a worker says to it. */
export type ToWorker =
  | { readonly kind: 'start'; readonly start: WorkerStart }
  /** Prepare the stop of the service. Answered with `drained`. */
  | { readonly kind: 'drain' }
  /** Let another worker take your place, then close. Answered with `closed`. */
  | { readonly kind: 'handOver' }
  /** Finish what is in progress. Answered with `closed`. */
  | { readonly kind: 'close'; readonly graceMs: number | undefined }
  /** Everything that was sent to you before this has arrived, connections included: end. */
  | { readonly kind: 'end' }
  /** Read files again. */
  | { readonly kind: 'reload' }
  /** Answered with `metrics`. */
  | { readonly kind: 'metrics' }

/** What is known of a service once it listens. */
export interface Serving extends Pick<Countersign, 'publicUrl' | 'description'> {
  readonly port: number
}

/** What a worker says. */
export type FromWorker =
  /** It can be told what to run. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly serving: Serving }
  /** It cannot start, and ends. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'drained' }
  /** With what it counted to its end; `cause` if something could not be closed. */
  | { readonly kind: 'closed'; readonly metrics: MetricValues | undefined; readonly cause: string | undefined }
  | { readonly kind: 'metrics'; readonly metrics: MetricValues | undefined }
