import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/base/log.ts'
import { Sampler } from '../../src/base/timing/sampler.ts'
import { ClientDocuments } from '../../src/oidc/client-documents.ts'
import { startInternet } from '../support/internet.ts'
import { navigate } from '../support/navigate.ts'
import { rest } from '../support/rest.ts'
import { authorizeAddress, documentOf, json, publish, startWithDocuments } from './documents.ts'
import { Browser, contentOf, shop, startIssuer } from './support.ts'

const internet = await startInternet()

/** What a browser sees at the issuer for a client_id: the kind of the page, or the error on it, or the reason. */
async function shownFor(url: string, id: string, browser = new Browser(url)): Promise<unknown> {
  const { kind, error, reason } = contentOf((await browser.open(authorizeAddress(url, id))).text)
  return error ?? reason ?? kind
}

function anyDocuments(): ClientDocuments {
  const parts = { validate: async () => {}, log: silentLogger, sampler: new Sampler() }
  return new ClientDocuments({ prefixes: ['*'], isTaken: () => false, ...parts })
}

const uncounted = { count: () => undefined, networks: [], mayFetch: true, takesStale: false }

const unavailable = 'temporarily_unavailable'

describe('nothing is connected to for a host', () => {
  test.each([
    ['of this machine', ['127.0.0.1']],
    ['of this machine, by IPv6', ['::1']],
    ['that is no address', ['0.0.0.0']],
    ['of a private network', ['10.1.2.3']],
    ['of another private network', ['192.168.0.1']],
    ['of a private IPv6 network', ['fd00::1']],
    ['of a provider’s network', ['100.64.0.1']],
    ['of the link, as metadata services of clouds', ['169.254.169.254']],
    ['of the link, by IPv6', ['fe80::1']],
    ['by an IPv4 address in IPv6', ['::ffff:7f00:1']],
    ['by a translated address (NAT64)', ['64:ff9b::7f00:1']],
    ['by a translated address of a network’s own', ['64:ff9b:1::7f00:1']],
    ['by a tunnel (6to4)', ['2002:7f00:1::']],
    ['of documentation', ['192.0.2.1']],
    ['that is public and inside', ['20.0.0.1', '10.1.2.3']],
    ['that is public and inside by IPv6', ['20.0.0.1', '::1']],
  ])('%s', async (_name, addresses) => {
    const { id, document } = documentOf('inside')
    internet.put(
      'inside',
      json(() => document),
      () => addresses,
    )
    const { url } = await startWithDocuments()
    internet.forget()
    expect(await shownFor(url, id)).toBe(unavailable)
    expect(internet.lookups.sort()).toEqual(['inside.clients.example A', 'inside.clients.example AAAA'])
    expect(internet.connections).toEqual([])
  })

  test.each(['127.0.0.1', '10.1.2.3', '[::1]', '[fe80::1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', 'localhost'])(
    'that is written %s',
    async (host) => {
      const { url } = await startWithDocuments()
      internet.forget()
      expect(await shownFor(url, `https://${host}/client.json`)).toBe(unavailable)
      expect(internet.connections).toEqual([])
    },
  )
})

test('a host that changes its address a moment later is connected to at the one that was checked', async () => {
  const { id, document } = documentOf('rebound')
  let answers = 0
  const addresses = () => (answers++ < 2 ? ['20.0.0.1'] : ['127.0.0.1'])
  internet.put(
    'rebound',
    json(() => document),
    addresses,
  )
  const { url } = await startWithDocuments()
  internet.forget()
  expect(await shownFor(url, id, await Browser.signedIn(url))).toBe('consent')
  // A and AAAA once each.
  expect(answers).toBe(2)
  expect(internet.connections).toEqual(['20.0.0.1'])
})

describe('a document is not had', () => {
  test.each<[string, Parameters<typeof internet.put>[1]]>([
    ['by a redirect', (_, response) => response.writeHead(302, { location: 'https://first.clients.example/x' }).end()],
    ['with a status that is not 200', (_, response) => response.writeHead(404).end('{}')],
    ['that is not JSON', (_, response) => response.end('<!doctype html>')],
    ['beyond 5 KiB', json(() => ({ ...documentOf('odd').document, padding: 'x'.repeat(5 * 1024) }))],
    [
      'without an end',
      (_, response) => {
        response.writeHead(200)
        const more = setInterval(() => response.write(' '), 100)
        response.once('close', () => clearInterval(more))
      },
    ],
    ['from a host that answers nothing', () => {}],
    ['whose connection breaks', (_, response) => void response.destroy()],
  ])('%s', async (_name, serve) => {
    const { id } = documentOf('odd')
    internet.put('odd', serve)
    const { url } = await startWithDocuments()
    internet.forget()
    expect(await shownFor(url, id)).toBe(unavailable)
    expect(internet.connections.length).toBe(1)
    // The failure is remembered.
    expect(await shownFor(url, id)).toBe(unavailable)
    expect(internet.connections.length).toBe(1)
  })

  test('from a host with the certificate of another', async () => {
    const id = 'https://a.b.clients.example/client.json'
    internet.put(
      'a.b.clients.example',
      json(() => ({ ...documentOf('a').document, client_id: id })),
    )
    const { url } = await startWithDocuments()
    expect(await shownFor(url, id)).toBe(unavailable)
  })

  test('from a host whose name servers answer nothing', async () => {
    const { id } = documentOf('silent')
    internet.put(
      'silent',
      () => {},
      () => undefined,
    )
    const { url } = await startWithDocuments()
    internet.forget()
    expect(await shownFor(url, id)).toBe(unavailable)
    expect(internet.connections).toEqual([])
  })
})

test('a document of just under 5 KiB is', async () => {
  const { id, document } = documentOf('large')
  const padding = 'x'.repeat(5 * 1024 - JSON.stringify({ ...document, padding: '' }).length)
  internet.put(
    'large',
    json(() => ({ ...document, padding })),
  )
  const { url } = await startWithDocuments()
  expect(await shownFor(url, id, await Browser.signedIn(url))).toBe('consent')
})

test('50 requests at once for a document that fails make one connection', async () => {
  const { id } = documentOf('flood')
  internet.put('flood', (_, response) => void setTimeout(() => response.writeHead(500).end(), 200))
  const { url } = await startWithDocuments()
  internet.forget()
  const shown = await Promise.all(Array.from({ length: 50 }, () => shownFor(url, id)))
  expect(new Set(shown)).toEqual(new Set([unavailable]))
  expect(internet.connections.length).toBe(1)
})

test('of 50 documents at once, two of a host are fetched at a time and five in all; 20 wait for their turn', async () => {
  const documents = anyDocuments()
  const findAll = async (ids: readonly string[]) => {
    internet.forget()
    const found = await Promise.allSettled(ids.map((id) => documents.find(id, uncounted)))
    expect(new Set(found.map(({ status }) => status))).toEqual(new Set(['rejected']))
    return { fetched: internet.connections.length, atOnce: internet.mostAtOnce }
  }
  const late: Parameters<typeof internet.put>[1] = (_, response) =>
    void setTimeout(() => response.writeHead(500).end(), 50)
  const numbers = Array.from({ length: 50 }, (_, index) => index)
  for (const index of numbers) internet.put(`many-${index}`, late)
  const ofOneHost = numbers.map((index) => `https://many-0.clients.example/${index}.json`)
  expect(await findAll(ofOneHost)).toEqual({ fetched: 22, atOnce: 2 })
  const ids = numbers.map((index) => documentOf(`many-${index}`).id)
  expect(await findAll(ids)).toEqual({ fetched: 25, atOnce: 5 })
  // Those that were not fetched have not failed.
  expect(await findAll(ids.slice(-1))).toMatchObject({ fetched: 1 })
  expect(await findAll(ids.slice(0, 1))).toMatchObject({ fetched: 0 })
})

describe('of one network', () => {
  /** What a browser behind an address sees, without a session, for a client. */
  const statusFor = async (url: string, id: string, ip: string) => {
    const headers = { accept: 'text/html', host: new URL(url).host, 'x-forwarded-for': ip }
    return (await navigate(authorizeAddress(url, id), { headers })).status
  }
  const ofHost = (path: string) => `https://honest.clients.example/${path}.json`
  const twenty = Array.from({ length: 20 }, (_, index) => index)
  const ten = twenty.slice(0, 10)

  test.each<[string, (index: number) => string, (index: number) => string]>([
    ['hosts that do not answer', (index) => documentOf(`mute-${index}`).id, (index) => documentOf(`good-${index}`).id],
    ['addresses that an honest host does not have', (index) => ofHost(`none-${index}`), (index) => ofHost(`${index}`)],
  ])('%s do not keep other networks from signing in', async (_name, made, own) => {
    internet.put('honest', (asked, response) => {
      if (asked.url?.startsWith('/none') === true) return
      json(() => documentOf('honest', { client_id: `https://honest.clients.example${asked.url}` }).document)(
        asked,
        response,
      )
    })
    for (const index of twenty) {
      publish(internet, `good-${index}`)
      internet.put(
        `mute-${index}`,
        () => {},
        () => undefined,
      )
    }
    const { url } = await startWithDocuments({ trustProxy: 1, rateLimit: true })
    internet.forget()
    const attack = twenty.map((index) => statusFor(url, made(index), '198.51.100.9'))
    await expect.poll(() => internet.lookups.length).toBeGreaterThanOrEqual(2)
    const others = await Promise.all(ten.map((index) => statusFor(url, own(index), `203.0.113.${index + 1}`)))
    expect(others).toEqual(ten.map(() => 303))
    expect(new Set(await Promise.all(attack))).toEqual(new Set([503]))
  })

  test('one document is fetched at a time, and of a wider one two; the longest wait is 2.5 seconds', async () => {
    const documents = anyDocuments()
    const fetchedBy = async (name: string, networksAt: (index: number) => readonly string[]) => {
      const ids = twenty.map((index) => {
        const host = `${name}-${index}`
        internet.put(host, () => {})
        return documentOf(host).id
      })
      internet.forget()
      const found = await Promise.allSettled(
        ids.map((id, index) => documents.find(id, { ...uncounted, networks: networksAt(index) })),
      )
      expect(new Set(found.map(({ status }) => status))).toEqual(new Set(['rejected']))
      // The next begin as these end, if that is before the end of their wait.
      expect(internet.connections.length).toBeLessThanOrEqual(2 * internet.mostAtOnce)
      return internet.mostAtOnce
    }
    expect(await fetchedBy('narrow', () => ['203.0.113.7'])).toBe(1)
    expect(await fetchedBy('wide', (index) => [`${index}/64`, `${index}/56`, 'all/48'])).toBe(2)
  })

  test('the next document waits until others, who have fetched none, have theirs', async () => {
    const documents = anyDocuments()
    const answers: (() => void)[] = []
    internet.put('turns', (_, response) => void answers.push(() => response.writeHead(404).end()))
    internet.forget()
    const fetched: string[] = []
    const find = (path: string, network: string) => {
      const id = `https://turns.clients.example/${path}`
      return documents.find(id, { ...uncounted, networks: [network] }).catch(() => fetched.push(path))
    }
    const all = [find('a1', 'a'), find('b1', 'b'), find('a2', 'a'), find('b2', 'b'), find('c1', 'c')]
    for (let answered = 0; answered < all.length; answered++) {
      await expect.poll(() => answers.length, { interval: 5 }).toBeGreaterThan(0)
      answers.shift()?.()
      await expect.poll(() => fetched.length, { interval: 5 }).toBe(answered + 1)
    }
    await Promise.all(all)
    expect(fetched).toEqual(['a1', 'b1', 'c1', 'a2', 'b2'])
  })
})

describe('a page elsewhere that makes its visitor’s browser ask, unseen, without an answer of the user', () => {
  const limits = { rates: { 'sign-in': 5 } }
  const frame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }
  const ahead = { 'sec-purpose': 'prefetch;anonymous-client-ip', 'sec-fetch-site': 'same-site' }
  const quiet = (url: string, id: string, uri?: string) => `${authorizeAddress(url, id, uri)}&prompt=none`
  const made = Array.from({ length: 12 }, (_, index) => `made-up-${index}`)
  /** Whether a sign-in can begin at the visitor's address. */
  const canSignIn = async (url: string) => (await rest(url, '/wallet/nonce', {})).status

  test('has no document fetched for a browser that is not signed in', async () => {
    const { url } = await startWithDocuments({ rateLimit: true, limits })
    internet.forget()
    for (const name of made) {
      const { response, text } = await new Browser(url).open(quiet(url, documentOf(name).id))
      expect([response.status, contentOf(text).error]).toEqual([400, 'login_required'])
      const headers = { ...frame, accept: 'text/html' }
      expect((await navigate(quiet(url, documentOf(name).id), { headers })).status).toBe(400)
    }
    expect([internet.lookups, internet.connections]).toEqual([[], []])
    expect(await canSignIn(url)).toBe(200)
    const known = publish(internet, 'known')
    await new Browser(url).open(authorizeAddress(url, known))
    const { address } = await new Browser(url).open(quiet(url, known))
    expect(address.searchParams.get('error')).toBe('login_required')
  })

  test.each([
    ['in a frame', { ...frame, 'sec-fetch-site': 'same-site' }],
    ['ahead of a click', ahead],
  ])('takes nothing from the sign-ins of its network, %s: documents', async (_name, headers) => {
    const { url } = await startWithDocuments({ rateLimit: true, limits })
    const browser = await Browser.signedIn(url)
    const statuses: number[] = []
    for (const name of made) statuses.push((await browser.fetch(quiet(url, documentOf(name).id), { headers })).status)
    // The step and the fetch count one each.
    expect(statuses).toEqual(made.map((_, index) => (index < 2 ? 503 : 429)))
    expect(await canSignIn(url)).toBe(200)
  })

  test('takes nothing from the sign-ins of its network: codes', async () => {
    const own = { first_party: true, metadata: { ...shop.metadata, redirect_uris: ['https://shop.example/cb'] } }
    const { url } = await startIssuer([own], { rateLimit: true, limits })
    const browser = await Browser.signedIn(url)
    const address = quiet(url, 'shop', 'https://shop.example/cb')
    const statuses: number[] = []
    for (const _ of made) {
      const headers = { ...frame, 'sec-fetch-site': 'same-site' }
      statuses.push((await browser.fetch(address, { headers })).status)
    }
    expect(statuses.slice(-1)).toEqual([429])
    expect(await canSignIn(url)).toBe(200)
  })
})

test.each([
  ['hosts', undefined],
  ['name servers', () => undefined],
])('two slow %s do not stop a third host', async (kind, addresses) => {
  const name = kind.replace(' ', '-')
  const ended: string[] = []
  const third = publish(internet, `third-${name}`)
  const { url } = await startWithDocuments()
  const browser = await Browser.signedIn(url)
  const slow = ['one', 'two'].map(async (each) => {
    internet.put(`${each}-${name}`, () => {}, addresses)
    await shownFor(url, documentOf(`${each}-${name}`).id)
    ended.push(each)
  })
  // Both are on their way.
  await sleep(100)
  expect(await shownFor(url, third, browser)).toBe('consent')
  expect(ended).toEqual([])
  await Promise.all(slow)
})

test('of failures, the last 1,000 are remembered', async () => {
  const documents = anyDocuments()
  let fetched = 0
  const count = () => {
    fetched++
    return undefined
  }
  const find = async (index: number) => {
    const id = `https://127.0.0.1/${index}.json`
    await expect(documents.find(id, { ...uncounted, count })).rejects.toThrow(/inside this network/)
  }
  for (let index = 0; index <= 1_000; index++) await find(index)
  expect(fetched).toBe(1_001)
  await find(1_000)
  await find(1)
  expect(fetched).toBe(1_001)
  await find(0)
  expect(fetched).toBe(1_002)
})

test('an answer does not say what the name servers of the service know', async () => {
  const hidden = documentOf('intranet')
  internet.put(
    'intranet',
    () => {},
    () => ['10.0.0.1'],
  )
  const { url } = await startWithDocuments()
  const bodyFor = async (id: string) => {
    const body = new URLSearchParams({ grant_type: 'refresh_token', client_id: id, refresh_token: 'x' })
    const answer = await fetch(`${url}/api/auth/oidc/token`, { method: 'POST', body })
    return { status: answer.status, text: await answer.text() }
  }
  const [inside, unknown] = [await bodyFor(hidden.id), await bodyFor(documentOf('unknown').id)]
  expect(inside).toEqual(unknown)
  expect(inside.status).toBe(503)
})
