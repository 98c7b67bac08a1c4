import { pathToFileURL } from 'node:url'
import { readEventStream } from '../../src/browser/client/event-stream.ts'
import {
  appOrigin,
  type CallName,
  type ContractDriver,
  type ContractOptions,
  EventsRefused,
  type Outcome,
  otherOrigin,
} from '../contract/driver.ts'
import { credentialHeaders } from '../contract/rest-driver.ts'
import { contractSuite } from '../contract/suite.ts'
import { GeneratedProject } from '../support/generated-client.ts'
import { OpenApiContract, packagedDocument } from '../support/openapi.ts'
import { startService } from '../support/service.ts'
import { checkedFetch } from './requests.ts'

const contract = new OpenApiContract(packagedDocument())

/** What a call of the generated client resolves with. */
interface Answered {
  // biome-ignore lint/suspicious/noExplicitAny: the generated types are not those of this repository's compiler.
  readonly data?: any
  readonly error?: { readonly code: string }
  readonly response: Response
}

type Sent = Readonly<Record<string, string>>
type Watched = { readonly orderId: string; readonly desktopToken: string; readonly after?: number }

/** See test/openapi/generated/calls.ts. */
type GeneratedCalls = Record<CallName, (input: object, headers: Sent) => Promise<Answered>> & {
  watchOrder(input: Watched, headers: Sent, signal: AbortSignal): Promise<Answered>
} & Record<'getCurrentSession' | 'listSessions' | 'signOut', (headers: Sent) => Promise<Answered>>

/** The module with the client, which the whole file shares. */
let module: Promise<{ generatedCalls(options: object): GeneratedCalls }> | undefined

async function loadCalls(url: string) {
  const project = await GeneratedProject.make(url)
  const file = await project.copy('test/openapi/generated/calls.ts')
  await project.check('calls.ts')
  return await import(/* @vite-ignore */ pathToFileURL(file).href)
}

function outcome({ data, error, response }: Answered): Outcome {
  const { headers } = response
  return error === undefined ? { json: data, headers } : { reason: error.code, json: error, headers }
}

contractSuite('a client generated from the OpenAPI document', async (options: ContractOptions = {}) => {
  const { url } = await startService({ appName: 'App', trustedOrigins: [appOrigin, otherOrigin], ...options })
  module ??= loadCalls(url)
  const calls = (await module).generatedCalls({ baseUrl: url, fetch: checkedFetch(contract) })
  const driver: ContractDriver = {
    ownOrigin: url,
    approvalPage: `${url}/c`,
    call: async (name, input, origin = appOrigin) => outcome(await calls[name](input, { origin })),
    async *watch(input, signal, origin = appOrigin) {
      const { orderId, desktopToken, afterSequence: after } = input as Watched & { afterSequence?: number }
      const watched = { orderId, desktopToken, ...(after === undefined ? {} : { after }) }
      const { data, error } = await calls.watchOrder(watched, { origin }, signal)
      if (error !== undefined) throw new EventsRefused(error.code)
      if (data) for await (const { data: text } of readEventStream(data)) yield JSON.parse(text)
    },
    session: async (credential) => (await calls.getCurrentSession(credentialHeaders(credential))).data?.session,
    sessions: async (credential) =>
      (await calls.listSessions(credentialHeaders(credential))).data.sessions.map(({ id }: { id: string }) => id),
    signOut: async (credential) => void (await calls.signOut(credentialHeaders(credential))),
  }
  return driver
})
