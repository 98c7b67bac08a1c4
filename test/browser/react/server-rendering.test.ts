import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect, test, vi } from 'vitest'
import { createCountersignClient } from '../../../src/browser/client/index.ts'
import { SignIn, type SignInProps, useSession, useSignIn } from '../../../src/browser/react/index.ts'

test('the element has each property as its attribute, and no function and no object in it', async () => {
  const { CountersignSignIn } = await import('../../../src/browser/element/element.ts')
  const props: SignInProps = {
    baseUrl: 'https://auth.example',
    basePath: '/auth',
    endpointPrefix: '/nimiq',
    kind: 'sign',
    adapterId: 'nimiq',
    adapterIds: ['nimiq', 'ed25519'],
    crossDeviceOnly: true,
    walletsFirst: true,
    returnTo: '/desk',
    displayTitle: 'A "title" & more',
    displaySummary: 'Summary',
    payload: '{}',
    payloadHash: 'sha256:abc',
    expectedAddress: 'NQ71',
    expectedPublicKeyHex: '0a9b',
    tokenStorageKey: 'token',
    tokenStorage: true,
    client: createCountersignClient(),
    startOrder: () => Promise.reject(new Error('not on a server')),
    texts: { cancel: 'Stop' },
    hub: { appName: 'Tally', load: () => new Promise(() => {}) },
    extraWallets: [],
    appAddress: () => '',
    onSignedIn: () => {},
    id: 'sign-in',
    className: 'card',
    style: { color: 'red' },
    children: 'One moment.',
  }
  const html = renderToString(createElement(SignIn, props))
  const attributes = [...html.matchAll(/ ([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value])
  expect(Object.fromEntries(attributes)).toEqual({
    'base-url': 'https://auth.example',
    'base-path': '/auth',
    'endpoint-prefix': '/nimiq',
    kind: 'sign',
    'adapter-id': 'nimiq',
    'adapter-ids': 'nimiq,ed25519',
    'cross-device-only': '',
    'wallets-first': '',
    'return-to': '/desk',
    'display-title': 'A &quot;title&quot; &amp; more',
    'display-summary': 'Summary',
    payload: '{}',
    'payload-hash': 'sha256:abc',
    'expected-address': 'NQ71',
    'expected-public-key-hex': '0a9b',
    'token-storage-key': 'token',
    'token-storage': '',
    id: 'sign-in',
    class: 'card',
    style: 'color:red',
  })
  const names = attributes.map(([name]) => name)
  for (const attribute of CountersignSignIn.observedAttributes) expect(names).toContain(attribute)
  expect(html).toMatch(/>One moment\.<\/countersign-sign-in>$/)
})

test('attributes that are absent or false are left out', () => {
  const html = renderToString(createElement(SignIn, { crossDeviceOnly: false, walletsFirst: false }))
  expect(html).toBe('<countersign-sign-in></countersign-sign-in>')
})

const fetched = vi.fn(() => Promise.reject(new Error('a server asked')))
const client = createCountersignClient({ baseUrl: 'https://auth.example', fetch: fetched })

function Both() {
  const { status, session } = useSession(client)
  return `${status} ${session} ${useSignIn(client).status}`
}

test('a server asks for no session and no nonce', () => {
  expect(renderToString(createElement(Both))).toBe('loading undefined idle')
  expect(fetched).not.toHaveBeenCalled()
})
