import { setTimeout as sleep } from 'node:timers/promises'
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose'
import * as client from 'openid-client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { keyTimes, rotationKey } from '../../src/oidc/commands.ts'
import type { SigningJwk } from '../../src/oidc/keys.ts'
import type { CountersignOptions } from '../../src/service/config.ts'
import { openStore } from '../../src/store/open.ts'
import { freePort } from '../support/redis-server.ts'
import { startService } from '../support/service.ts'
import { stores } from '../support/stores.ts'
import { connect, fileWith, refusalOf, shop } from './support.ts'

const usualTimes = { ...keyTimes }
// Seconds in place of half an hour and a minute.
beforeAll(() => void Object.assign(keyTimes, { publishMs: 5_000, lookMs: 1_000 }))
afterAll(() => void Object.assign(keyTimes, usualTimes))

type Algorithm = 'RS256' | 'ES256'

const clientOf = (algorithm: Algorithm) => ({
  metadata: { ...shop.metadata, client_id: `shop-${algorithm}`, id_token_signed_response_alg: algorithm },
})
const resourceOf = (algorithm: Algorithm) => ({
  resource: `https://${algorithm.toLowerCase()}.example/`,
  scopes: ['read'],
  algorithm,
})
const algorithms: readonly Algorithm[] = ['RS256', 'ES256']
const file = () => fileWith({ clients: algorithms.map(clientOf), resources: algorithms.map(resourceOf) })

/** Two instances of one service, which are restarted in turn, and the way to the one that is up. */
class Instances {
  readonly ports: readonly [number, number]
  readonly #options: CountersignOptions
  readonly #services = new Map<number, Awaited<ReturnType<typeof startService>>['service']>()
  readonly #inFlight = new Map<number, number>()
  #draining: number | undefined
  #calls = 0
  /** Calls that met an instance that was down. */
  refused = 0

  constructor(ports: readonly [number, number], options: CountersignOptions) {
    this.ports = ports
    this.#options = options
  }

  /** Starts each anew with a list of secrets, one after the other. */
  async restart(...secret: string[]): Promise<void> {
    for (const port of this.ports) {
      // As a balancer does while an instance drains: a connection that a stopping instance has not taken up is reset.
      this.#draining = port
      while ((this.#inFlight.get(port) ?? 0) > 0) await sleep(1)
      await this.#services.get(port)?.close(500)
      // As if it had found out late that the instance is gone.
      this.#draining = undefined
      await sleep(50)
      this.#services.set(port, (await startService({ ...this.#options, port, secret })).service)
      // Each client meets the two while they differ.
      await sleep(500)
    }
  }

  /**
   * Calls the one and the other in turn. Only a refused connection is tried again, at the other: nothing was sent. What
   * broke off later may have used the refresh token up, and a second use of it is what a thief's looks like, which ends
   * the grant.
   */
  readonly fetch = async (address: string, init: RequestInit): Promise<Response> => {
    const [first, second] = this.#calls++ % 2 === 0 ? this.ports : this.ports.toReversed()
    if (first === this.#draining) return await this.#send(second, address, init)
    return await this.#send(first, address, init).catch(async (error: TypeError) => {
      if ((error.cause as NodeJS.ErrnoException | undefined)?.code !== 'ECONNREFUSED') throw error
      this.refused++
      return await this.#send(second, address, init)
    })
  }

  async #send(port = 0, address: string, init: RequestInit): Promise<Response> {
    const { pathname, search } = new URL(address)
    this.#inFlight.set(port, (this.#inFlight.get(port) ?? 0) + 1)
    try {
      // A connection for each: one that is kept can be closed at the moment of the next call.
      const headers = { ...Object.fromEntries(new Headers(init.headers)), connection: 'close' }
      const response = await fetch(`http://127.0.0.1:${port}${pathname}${search}`, { ...init, headers })
      return new Response(await response.arrayBuffer(), response)
    } finally {
      this.#inFlight.set(port, (this.#inFlight.get(port) ?? 0) - 1)
    }
  }
}

/** What a client gets, and with which algorithms it is signed. */
interface Kind {
  readonly idToken: Algorithm
  /** Absent: access tokens are opaque. */
  readonly accessToken?: Algorithm
}

const kinds: readonly Kind[] = [
  { idToken: 'RS256' },
  { idToken: 'ES256' },
  { idToken: 'RS256', accessToken: 'ES256' },
  { idToken: 'ES256', accessToken: 'RS256' },
]

/** A client with a chain of refresh tokens of its own. */
async function connectClient(instances: Instances, url: string, { idToken, accessToken }: Kind) {
  const { metadata } = clientOf(idToken)
  const resource: Record<string, string> = accessToken ? { resource: resourceOf(accessToken).resource } : {}
  const parameters = { scope: accessToken ? 'openid read' : 'openid profile', ...resource }
  const { config, session, tokens: first } = await connect(url, parameters, metadata)
  config[client.customFetch] = (address, init) => instances.fetch(address, init as RequestInit)
  // Keeps the key set for as long as a key is published before it signs, whatever key it meets meanwhile.
  const keySet = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`), {
    [customFetch]: (address, init) => instances.fetch(address, init as RequestInit),
    cacheMaxAge: keyTimes.publishMs,
    cooldownDuration: keyTimes.publishMs,
  })
  /** By algorithm, the keys that signed what it got last. */
  const kids = new Map<Algorithm, string>()
  const verify = async (token: string, algorithm: Algorithm, audience: string): Promise<void> => {
    const { protectedHeader } = await jwtVerify(token, keySet, { issuer: url, audience, algorithms: [algorithm] })
    kids.set(algorithm, String(protectedHeader.kid))
  }
  const check = async (tokens: client.TokenEndpointResponse): Promise<void> => {
    await verify(tokens.id_token ?? '', idToken, metadata.client_id)
    if (accessToken !== undefined) return await verify(tokens.access_token, accessToken, String(resource.resource))
    for (const token of [first.access_token, tokens.access_token]) {
      await client.fetchUserInfo(config, token, session.userId)
      const { active } = await client.tokenIntrospection(config, token)
      if (!active) throw new Error('a token is not active')
    }
  }
  let tokens: client.TokenEndpointResponse = first
  let refreshes = 0
  return {
    kind: { idToken, accessToken },
    kids,
    refreshes: () => refreshes,
    async refresh(): Promise<void> {
      tokens = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', resource)
      await check(tokens)
      refreshes++
    },
  }
}

const old = 'the secret that was there before the rotation'
const next = 'the secret that is there after the rotation'

describe.each(stores)('on $name', ({ open }) => {
  test('while secret and RSA key are rotated over two instances, no refresh fails and each token is good', async () => {
    const selected = await open()
    const ports = [await freePort(), await freePort()] as const
    const url = `http://localhost:${ports[0]}`
    const instances = new Instances(ports, { ...selected, publicUrl: url, oidc: { clients: file() } })
    await instances.restart(old)
    const clients = await Promise.all([...kinds, ...kinds].map((kind) => connectClient(instances, url, kind)))
    const failures: unknown[] = []
    const stop = new AbortController()
    const load = clients.map(async ({ kind, refresh }) => {
      while (!stop.signal.aborted) {
        const refusal = await refusalOf(refresh())
        if (refusal !== undefined) return void failures.push({ kind, refusal })
        await sleep(20)
      }
    })
    /** The keys that sign now, by algorithm: after one refresh of each client that was not under way yet. */
    const signing = async (): Promise<string[][]> => {
      const counts = clients.map(({ refreshes }) => refreshes() + 2)
      const isDone = () => clients.every(({ refreshes }, index) => refreshes() >= (counts[index] ?? 0))
      await vi.waitUntil(() => failures.length > 0 || isDone(), { timeout: 20_000 })
      return algorithms.map((algorithm) => [...new Set(clients.flatMap(({ kids }) => kids.get(algorithm) ?? []))])
    }
    /** The keys in the key set of each instance, by algorithm. */
    const published = async (): Promise<string[][][]> => {
      const keySets = ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`)).json())
      return (await Promise.all(keySets)).map(({ keys }: { keys: SigningJwk[] }) =>
        algorithms.map((each) => keys.filter(({ alg }) => alg === each).map(({ kid }) => kid)),
      )
    }

    const before = await signing()
    // As `countersign admin oidc rotate-key` does.
    const store = await openStore(String(selected.store))
    onTestFinished(() => store.close())
    await store.create(rotationKey, 'wanted', 'forever')
    await vi.waitUntil(async () => (await published()).every(([rsa]) => rsa?.length === 2), { timeout: 20_000 })
    await instances.restart(old, next)
    const [, during] = await signing()
    const duringPublished = (await published()).map(([, derived]) => derived)
    await sleep(keyTimes.publishMs)
    await instances.restart(next, old)
    await sleep(2 * keyTimes.lookMs)
    const after = await signing()
    stop.abort()
    await Promise.all(load)

    expect(failures).toEqual([])
    const [[rsa], [derived]] = before as [string[], string[]]
    const [[nextRsa], [nextDerived]] = after as [string[], string[]]
    expect(before).toEqual([[rsa], [derived]])
    expect(during).toEqual([derived])
    expect(duringPublished).toEqual(ports.map(() => [derived, nextDerived]))
    expect(after).toEqual([[nextRsa], [nextDerived]])
    expect(new Set([rsa, nextRsa, derived, nextDerived]).size).toBe(4)
    // Refreshes did meet an instance that was down.
    expect(instances.refused).toBeGreaterThan(0)
  })
})
