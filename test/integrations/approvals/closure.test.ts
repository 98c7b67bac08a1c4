import { readdir } from 'node:fs/promises'
import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { afterEach, expect, test, vi } from 'vitest'
import { restEndpoints } from '../../../src/http/rest/endpoints.ts'
import type { Approval, Approvals } from '../../../src/integrations/approvals/index.ts'
import { sessionCookieName } from '../../../src/shared/header-text.ts'
import { pageNames } from '../../../src/shared/page-names.ts'
import { clientsFile, shop } from '../../oidc/support.ts'
import { navigate } from '../../support/navigate.ts'
import { readRpcAnswer } from '../../support/rpc-answer.ts'
import { envelope } from '../../support/rpc-call.ts'
import { Agent, type Holding, holdings, inputs } from './agent.ts'
import { everyone, type OtherRoute, others, ownPageOrders, pages, type Row, rpcs } from './closure-table.ts'
import { call, reasonOf, startApprovals, TestUser } from './support.ts'

afterEach(() => void vi.useRealTimers())

const basePath = '/api/auth'
const endpoints = restEndpoints({ basePath, endpointPrefix: '/wallet' })

/** The paths that are added to a router while a service starts: it shows them to nothing outside. */
async function routesOf<T>(start: () => Promise<T>): Promise<{ readonly made: T; readonly routes: readonly string[] }> {
  const routes = new Set<string>()
  const { set } = Map.prototype
  Map.prototype.set = function (key: unknown, value: unknown) {
    const isRoute = typeof value === 'function' || (typeof value === 'object' && value !== null && 'serve' in value)
    // The files that pages are made of.
    if (typeof key === 'string' && /^\/(?!(pages|api\/auth\/sign-in)\/)/.test(key) && isRoute) routes.add(key)
    return set.call(this, key, value)
  }
  try {
    return { made: await start(), routes: [...routes] }
  } finally {
    Map.prototype.set = set
  }
}

/** Every RPC of the generated code, by its path. */
async function describedRpcs(): Promise<ReadonlyMap<string, DescMethod>> {
  const found = new Map<string, DescMethod>()
  for (const folder of ['countersign/v1', 'grpc/health/v1']) {
    const at = new URL(`../../../gen/server/${folder}/`, import.meta.url)
    const files = (await readdir(at)).filter((name) => name.endsWith('_pb.ts'))
    const modules: object[] = await Promise.all(files.map((name) => import(new URL(name, at).href)))
    const services: DescService[] = modules
      .flatMap((each) => Object.values(each))
      .filter((each) => each?.kind === 'service')
    for (const { typeName, methods } of services) {
      for (const method of methods) found.set(`/${typeName}/${method.name}`, method)
    }
  }
  return found
}

const nameOf = ({ parent, name }: DescMethod): string => `${parent.typeName.split('.').at(-1)}/${name}`

/** A service with all its parts, a user and an agent for each cell. */
async function openScene() {
  const options = {
    oidc: { clients: clientsFile(shop), device: true },
    trustProxy: 1,
    accessTokens: { audiences: ['https://api.example'] },
  }
  const { made, routes } = await routesOf(() => startApprovals(options))
  const { url, user, startKey, backend } = made
  const now = Date.now() + 11 * 60_000
  vi.useFakeTimers({ toFake: ['Date'], now })
  /** A session that is a minute too old to change wallets. */
  const signInEarlier = async (): Promise<TestUser> => {
    vi.setSystemTime(now - 11 * 60_000)
    const signedIn = await TestUser.signIn(url, user.wallet)
    vi.setSystemTime(now)
    return signedIn
  }
  let desktopToken = ''
  const approvals: Approvals = backend({
    fetch: async (address, init) => {
      const response = await fetch(address, init)
      if (address.endsWith('/start')) desktopToken = (await response.clone().json()).desktopToken
      return response
    },
  })
  const wallets = user.wallets
  let approval: Approval | undefined
  const status = async (): Promise<string> => {
    const path = `/cross-device/events?orderId=${approval?.id}&wait=0`
    const headers = { accept: 'application/json', authorization: `Bearer ${desktopToken}` }
    const { events } = (await (await fetch(`${url}${basePath}${path}`, { headers })).json()) as {
      events: { status: string }[]
    }
    return events.at(-1)?.status ?? 'none'
  }
  return {
    url,
    routes,
    async agent(holding: Holding): Promise<Agent> {
      const isLive = approval !== undefined && /^(created|claimed|waiting_user)$/.test(await status())
      if (!isLive)
        approval = await approvals.ask({ userId: user.id, wallets, title: 'Delete', action: { tool: 'delete' } })
      const own = await signInEarlier()
      const bearer = {
        nothing: undefined,
        'start key': startKey,
        'desktop token': desktopToken,
        'approval URL': undefined,
        "the user's token": own.token,
        'own wallet': (await TestUser.signIn(url)).token,
      }[holding]
      return new Agent({ url, holding, user: own, approval: approval as Approval, desktopToken, bearer })
    },
    /** What may never come of anything that an agent does. */
    async harm(): Promise<string | undefined> {
      const { token } = await TestUser.signIn(url, user.wallet)
      const { wallets: listed } = await call(url, '/wallet/list', undefined, token)
      const addresses = listed.map(({ address }: { address: string }) => address)
      if (addresses.join() !== user.wallet.address) return 'the wallets changed'
      return /^(approved|finalized)$/.test(await status()) ? 'the order was approved' : undefined
    },
  }
}

type Scene = Awaited<ReturnType<typeof openScene>>

/** Calls an RPC at its own path. Resolves with the reason of the refusal. */
async function callRpc(rpc: DescMethod, input: object, agent: Agent): Promise<string | undefined> {
  const isStream = rpc.methodKind === 'server_streaming'
  const text = Buffer.from(JSON.stringify(input))
  const { status, headers, body } = await fetch(`${agent.url}/${rpc.parent.typeName}/${rpc.name}`, {
    method: 'POST',
    headers: {
      'content-type': isStream ? 'application/connect+json' : 'application/json',
      'accept-encoding': 'identity',
      ...bearerOf(agent),
    },
    body: new Uint8Array(isStream ? envelope(text) : text),
  })
  const chunks: Uint8Array[] = []
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    // A stream that begins with a message refuses nothing. It is left by that.
    if (isStream && ((chunk[0] ?? 0) & 2) === 0) return undefined
  }
  const answer = readRpcAnswer({ status, headers, body: Buffer.concat(chunks), trailers: new Headers() }, rpc)
  return answer.failure?.reason ?? answer.failure?.code
}

function bearerOf({ bearer }: Agent): Record<string, string> {
  return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
}

/** Calls an RPC by REST. Resolves with the reason of the refusal. */
async function callRest(
  endpoint: (typeof endpoints)[number],
  input: object,
  agent: Agent,
): Promise<string | undefined> {
  const { httpMethod, path } = endpoint
  const fields = input as Readonly<Record<string, string>>
  // A GET has its token in the header.
  const token = fields.claimToken ?? fields.challengeToken ?? fields.desktopToken
  const isGet = httpMethod === 'GET'
  const query = isGet && token !== undefined ? `?orderId=${fields.orderId}&wait=0` : ''
  const response = await fetch(`${agent.url}${path}${query}`, {
    method: httpMethod,
    ...(isGet ? {} : { body: JSON.stringify(input) }),
    headers: {
      accept: 'application/json',
      ...(isGet ? {} : { 'content-type': 'application/json' }),
      ...bearerOf(agent),
      ...(isGet && token !== undefined ? { authorization: `Bearer ${token}` } : {}),
    },
  })
  const text = await response.text()
  return response.status === 200 ? undefined : JSON.parse(text).code
}

/** Fills a row: what becomes of each agent's call. */
async function fill(scene: Scene, act: (agent: Agent) => Promise<string | undefined>): Promise<Record<string, string>> {
  const row: Record<string, string> = {}
  for (const holding of holdings) {
    const agent = await scene.agent(holding)
    const refusal = await act(agent)
    row[holding] = (await scene.harm()) ?? refusal ?? 'harmless'
  }
  return row
}

/** A row of the table without the reasons why what goes through is harmless. */
function outcomesOf(row: Row): Record<string, string> {
  const outcomes = Object.entries(row).map(([holding, says]) => [
    holding,
    says.replace(/^harmless: .{10,}$/, 'harmless'),
  ])
  return Object.fromEntries(outcomes)
}

test('every RPC, at its own path and by REST, is refused to an agent or harmless, as its row says', async () => {
  const scene = await openScene()
  const described = await describedRpcs()
  const found: Record<string, unknown> = {}
  for (const path of scene.routes) {
    const rpc = described.get(path)
    if (rpc === undefined) continue
    const name = nameOf(rpc)
    const input = inputs[name]
    if (input === undefined) throw new Error(`agent.ts does not say what an agent sends to ${name}`)
    found[name] = await fill(scene, async (agent) => callRpc(rpc, await input(agent), agent))
    for (const endpoint of endpoints.filter((each) => each.rpc === rpc)) {
      const byRest = await fill(scene, async (agent) => callRest(endpoint, await input(agent), agent))
      expect({ [endpoint.path]: byRest }).toEqual({ [endpoint.path]: found[name] })
    }
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(rpcs).map(([name, row]) => [name, outcomesOf(row)])))
}, 300_000)

test('orders that the service’s own pages start are refused to an agent or harmless, as their rows say', async () => {
  const scene = await openScene()
  const rpc = [...(await describedRpcs()).values()].find((each) => nameOf(each) === 'OrderService/StartOrder')
  for (const { input, row } of ownPageOrders) {
    const found = await fill(scene, (agent) => callRpc(rpc as DescMethod, input, agent))
    expect({ input, found }).toEqual({ input, found: outcomesOf(row) })
  }
}, 300_000)

/** Calls a route that is no RPC, with what an agent holds as a bearer token or as the session's cookie. */
async function callOther(
  path: string,
  { method, parameters = {} }: OtherRoute,
  agent: Agent,
  form: 'bearer' | 'cookie',
) {
  const query = new URLSearchParams(parameters)
  const isGet = method === 'GET'
  const cookie = { cookie: `${sessionCookieName(false)}=${agent.bearer ?? agent.token}` }
  const { status } = await navigate(`${agent.url}${path}${isGet ? `?${query}` : ''}`, {
    method,
    ...(isGet ? {} : { body: query.toString() }),
    headers: {
      ...(isGet ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      // As a proxy asks.
      'x-forwarded-method': 'GET',
      ...(form === 'bearer' ? bearerOf(agent) : cookie),
    },
  })
  return status < 400 ? undefined : String(status)
}

test('every other route of the router, and of the issuer, is refused to an agent or harmless, as its row says', async () => {
  const scene = await openScene()
  const described = await describedRpcs()
  const rest = new Set(endpoints.map(({ path }) => path))
  const routes = scene.routes.filter((path) => !described.has(path) && !rest.has(path))
  const withId = Object.keys(others).filter((path) => path.endsWith('AAAA'))
  expect([...routes, ...withId].sort()).toEqual(Object.keys(others).sort())
  const found: Record<string, unknown> = {}
  for (const [path, route] of Object.entries(others)) {
    found[path] = await fill(scene, (agent) => callOther(path, route, agent, 'bearer'))
    const byCookie = await fill(scene, (agent) => callOther(path, route, agent, 'cookie'))
    // No token is a cookie: a call with one is no more than a call with nothing.
    expect({ [path]: byCookie }).toEqual({ [path]: outcomesOf(everyone(route.row.nothing)) })
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(others).map(([path, { row }]) => [path, outcomesOf(row)])))
}, 300_000)

test('every page is the same for an agent, whatever it holds', async () => {
  expect(pageNames.filter((name) => pages[name] === undefined)).toEqual([])
  const scene = await openScene()
  for (const [name, path] of Object.entries(pages)) {
    const row = await fill(scene, async (agent) => {
      const answer = await navigate(`${agent.url}${path}`, { headers: bearerOf(agent) })
      return `${answer.status} ${answer.headers.get('location') ?? ''}`
    })
    expect([name, new Set(Object.values(row)).size]).toEqual([name, 1])
  }
}, 300_000)

test('with the user’s token of the last ten minutes, an agent changes wallets, and none of them approves anything', async () => {
  const { url, user, backend } = await startApprovals()
  const ask = () => backend().ask({ userId: user.id, wallets: user.wallets, title: 'Delete', action: {} })
  const approval = await ask()
  const agent = new Agent({ url, holding: "the user's token", user, approval, desktopToken: '', bearer: user.token })
  await call(url, '/wallet/link', await agent.nonceProof('link'), user.token)
  const { challengeToken } = await user.open(approval.id)
  const proof = await agent.proof(challengeToken)
  const approve = call(url, '/cross-device/approve', { orderId: approval.id, challengeToken, proof })
  expect(await reasonOf(approve)).toBe('WRONG_WALLET')
  // Not even once it is the user's only one, and old.
  await call(url, '/wallet/unlink', { adapterId: 'nimiq', address: user.wallet.address }, user.token)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25 * 3_600_000 })
  const thief = await TestUser.signIn(url, agent.wallet)
  expect(thief.id).toBe(user.id)
  const late = await ask()
  expect(await reasonOf(thief.approve(late.id))).toBe('WRONG_WALLET')
})
