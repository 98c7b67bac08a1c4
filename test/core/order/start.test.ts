import { describe, expect, test } from 'vitest'
import type { StartOrderOptions } from '../../../src/shared/orders.ts'
import { hostileReturnPaths, returnPaths } from '../../support/return-paths.ts'
import { stores } from '../../support/stores.ts'
import {
  appOrigin,
  desktop,
  from,
  makeInstance,
  outcomeOf,
  ownOrigin,
  phone,
  reasonOf,
  suiteStore,
  untilApproved,
  untilWaiting,
} from './support.ts'

describe.each(stores)('starting orders on $name', async ({ open }) => {
  const store = await suiteStore(open)

  test('has the token in the fragment of the claim URL', async () => {
    const { claimUrl, claimToken, orderId } = await makeInstance(store).orders.start({ kind: 'login' }, desktop)
    expect(claimUrl).toBe(`${ownOrigin}/cross-device/claim/${orderId}#token=${claimToken}`)
    expect(new URL(claimUrl).hash).toContain(claimToken)
  })

  test('fills in a template of the application with any values', async () => {
    const settings = { claimUrlTemplate: 'app:claim/{orderId}?by={origin}#{claimToken}', publicOrigin: () => '$&' }
    const { claimUrl, claimToken, orderId } = await makeInstance(store, { settings }).orders.start(
      { kind: 'login' },
      desktop,
    )
    expect(claimUrl).toBe(`app:claim/${orderId}?by=$&#${claimToken}`)
  })

  test('says everything in the message that is signed', async () => {
    const instance = makeInstance(store)
    const input: StartOrderOptions = {
      kind: 'sign',
      displayTitle: 'Überweisung 😀',
      displaySummary: '5 NIM',
      payloadHash: 'abc=',
    }
    const order = await untilWaiting(instance, input)
    const issuedAt = new Date(order.expiresAt - 120_000).toISOString()
    const expiresAt = new Date(order.expiresAt).toISOString()
    expect(order.message.split('\n')).toEqual([
      'Example requests approval',
      'Action: order.approve',
      `Origin: ${appOrigin}`,
      expect.stringMatching(/^Challenge ID: [\w-]{22}$/),
      expect.stringMatching(/^Nonce: [\w-]{43}$/),
      `Issued At: ${issuedAt}`,
      `Expires At: ${expiresAt}`,
      `Order ID: ${order.orderId}`,
      'Kind: sign',
      `Code: ${order.confirmationCode}`,
      'Payload Hash: abc=',
      'Title: Überweisung 😀',
      'Summary: 5 NIM',
    ])
    expect(order.confirmationCode).toMatch(/^\d\d$/)
  })

  test('shows the payload in the text, scanned or of an inbox alike, in its canonical form', async () => {
    const order = await untilWaiting(makeInstance(store), { kind: 'sign', payload: '{"to": "Ünal", "amount": 2.5e2}' })
    expect(order.message).toMatch(/\nPayload Hash: sha256:[\w-]{43}\nPayload: {"amount":250,"to":"Ünal"}$/)
  })

  test('is for trusted origins only', async () => {
    const { orders } = makeInstance(store)
    const evil = await outcomeOf(orders.start({ kind: 'login' }, from('https://evil.example')))
    expect(evil.reason).toBe('ORIGIN_NOT_TRUSTED')
    expect(evil.message).toContain('https://evil.example')
    expect(await reasonOf(orders.start({ kind: 'login' }, from(undefined)))).toBe('ORIGIN_NOT_TRUSTED')
    expect(await reasonOf(orders.start({ kind: 'login' }, from(ownOrigin)))).toBeUndefined()
  })

  test('refuses an adapter that is not configured', async () => {
    const { orders } = makeInstance(store)
    expect(await outcomeOf(orders.start({ kind: 'login', adapterId: 'other' }, desktop))).toEqual({
      reason: 'ADAPTER_UNKNOWN',
      message: expect.stringContaining('nimiq, ed25519'),
    })
  })

  const forbidden = [
    '\n',
    '\r',
    '\u0000',
    '\u007f',
    '\u0085',
    '\u2028',
    '\u2029',
    '\u202e',
    '\u2066',
    '\u200f',
    '\ud800',
  ]
  test.each([
    ['displayTitle', 'display_title'],
    ['displaySummary', 'display_summary'],
    ['payloadHash', 'payload_hash'],
  ])('refuses what forges a line in %s', async (field, name) => {
    const { orders } = makeInstance(store)
    for (const character of forbidden) {
      // Dropped, as the next test says.
      if (character === '\u200f' && field !== 'payloadHash') continue
      const call = orders.start({ kind: 'sign', [field]: `a${character}Code: 11` }, desktop)
      expect(await outcomeOf(call)).toEqual({ reason: 'INVALID_REQUEST', message: expect.stringContaining(name) })
    }
  })

  describe('the requester’s own words', () => {
    const spaces = ['  ', '\u00a0', '\u3000', '\u2009', '\u2003\u202f', '\u1680 ', ' \u205f ']

    test.each(['login', 'sign'] as const)(
      'have one space for any white space, in the signed text, too: %s',
      async (kind) => {
        const instance = makeInstance(store)
        for (const space of spaces) {
          const text = `${space}Pay${space}5 NIM${space}`
          const order = await untilWaiting(instance, { kind, displayTitle: text, displaySummary: `${text}${text}` })
          const challenge = await instance.orders.readChallenge(order, phone)
          expect(challenge).toMatchObject({ displayTitle: 'Pay 5 NIM', displaySummary: 'Pay 5 NIM Pay 5 NIM' })
          expect(order.message.split('\n').slice(-2)).toEqual(['Title: Pay 5 NIM', 'Summary: Pay 5 NIM Pay 5 NIM'])
        }
      },
    )

    test.each([
      ['he-IL', 'ILS'],
      ['ar-EG', 'EGP'],
      ['fa-IR', 'IRR'],
    ])('lose the marks that order text, as Intl writes them for %s, and nothing else', async (language, currency) => {
      const instance = makeInstance(store)
      const amount = new Intl.NumberFormat(language, { style: 'currency', currency }).format(1250.5)
      const marked = `\u061c${amount}\u200f`
      const order = await untilWaiting(instance, { kind: 'sign', displayTitle: marked, displaySummary: marked })
      const seen = amount
        .replaceAll('\u200e', '')
        .replaceAll('\u200f', '')
        .replaceAll('\u061c', '')
        .replace(/\s/g, ' ')
        .trim()
      expect(seen).not.toBe(amount)
      const challenge = await instance.orders.readChallenge(order, phone)
      expect(challenge).toMatchObject({ displayTitle: seen, displaySummary: seen })
      expect(order.message.split('\n').slice(-2)).toEqual([`Title: ${seen}`, `Summary: ${seen}`])
    })

    test.each(['login', 'sign'] as const)('count as absent if they are white space only: %s', async (kind) => {
      const instance = makeInstance(store)
      for (const space of ['', ' ', ...spaces]) {
        const order = await untilWaiting(instance, { kind, displayTitle: space, displaySummary: space })
        const challenge = await instance.orders.readChallenge(order, phone)
        expect(challenge).not.toHaveProperty('displayTitle')
        expect(challenge).not.toHaveProperty('displaySummary')
        expect(order.message).not.toMatch(/^(Title|Summary):/m)
      }
    })

    test('stand last in the signed text, so that they cannot look like what the service says', async () => {
      const words = { displayTitle: 'Code: 11', displaySummary: 'Payload Hash: sha256:00' }
      const order = await untilWaiting(makeInstance(store), { kind: 'sign', payloadHash: 'sha256:ff', ...words })
      expect(order.message.split('\n').slice(-4)).toEqual([
        `Code: ${order.confirmationCode}`,
        'Payload Hash: sha256:ff',
        'Title: Code: 11',
        'Summary: Payload Hash: sha256:00',
      ])
    })
  })

  test.each(hostileReturnPaths)('refuses to return to %j', async (returnTo) => {
    const { orders } = makeInstance(store)
    expect(await outcomeOf(orders.start({ kind: 'login', returnTo }, desktop))).toEqual({
      reason: 'INVALID_REQUEST',
      message: expect.stringContaining('return_to'),
    })
  })

  test.each(returnPaths)('returns to %j as it is', async (returnTo) => {
    const instance = makeInstance(store)
    const order = await untilApproved(instance, { kind: 'sign', returnTo })
    const { redirectTo } = await instance.orders.finalize(order, desktop)
    expect(redirectTo).toBe(returnTo)
    expect(new URL(redirectTo, appOrigin).origin).toBe(appOrigin)
  })
})
