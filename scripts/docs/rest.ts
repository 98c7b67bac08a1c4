import type { ProtoComments } from '../proto-comments.ts'
import { summaryOf } from './comments.ts'
import { code, markdownTable, toHeading } from './markdown.ts'
import { endpoints, nameOf, rpcs, services } from './services.ts'

/** The parts of docs/rest.md. */
export function restParts(comments: ProtoComments): Readonly<Record<string, string>> {
  const rows = services.flatMap((service) =>
    endpoints
      .filter(({ rpc }) => rpc.parent === service)
      .map(({ httpMethod, path, rpc }) => [
        code(`${httpMethod} ${path}`),
        toHeading(rpc.name, 'protocol.md', code(nameOf(rpc))),
        summaryOf(rpc, 'rest.md', comments),
      ]),
  )
  const others = rpcs
    .filter((rpc) => !endpoints.some((endpoint) => endpoint.rpc === rpc))
    .map((rpc) => [
      'only as an RPC',
      toHeading(rpc.name, 'protocol.md', code(nameOf(rpc))),
      summaryOf(rpc, 'rest.md', comments),
    ])
  return { 'REST calls': markdownTable(['REST', 'RPC', 'what it does'], [...rows, ...others]) }
}
