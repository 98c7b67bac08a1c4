import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from '../../gen/grpc/health/v1/health_pb.ts'

/** What the health service tells of. */
export interface HealthSource {
  /** Full names of the services, such as `countersign.v1.SignInService`. All are as well as the process is. */
  readonly services: readonly string[]
  /** Resolves when the store answers. */
  readonly ready: () => Promise<void>
  /** Aborts when the server means to stop. */
  readonly shutdown: AbortSignal
}

/**
 * Registers grpc.health.v1.Health, which gRPC's load balancers and Kubernetes ask. Check and List say what `/readyz` says; an
 * empty service name means the whole server. Watch is not served: gRPC's clients then take the server to be well.
 */
export function registerHealth(router: ConnectRouter, { services, ready, shutdown }: HealthSource): void {
  const status = async () => {
    if (shutdown.aborted) return { status: ServingStatus.NOT_SERVING }
    return await ready().then(
      () => ({ status: ServingStatus.SERVING }),
      () => ({ status: ServingStatus.NOT_SERVING }),
    )
  }
  router.service(Health, {
    check: async ({ service }) => {
      if (service === '' || services.includes(service)) return await status()
      throw new ConnectError('There is no such service here', Code.NotFound)
    },
    list: async () => {
      const now = await status()
      return { statuses: Object.fromEntries(['', ...services].map((service) => [service, now])) }
    },
  })
}
