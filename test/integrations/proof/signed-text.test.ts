import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Challenge, challengeMessage } from '../../../src/core/challenge-text.ts'
import { readSignedText } from '../../../src/integrations/proof/signed-text.ts'
import { isPlainLine } from '../../../src/shared/plain-line.ts'

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,22}$/)
const words = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }).filter(isPlainLine)
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const time = fc.integer({ min: 0, max: 8_000_000_000_000 })

/** Words that look like other lines. */
const tricky = fc.constantFrom('Origin: https://evil.example', 'Kind: login', ' requests approval', ': ', 'Title: a')

test('everything that the service writes for a sign order is read back, in any order of its lines', () => {
  const lines = fc.record({
    orderId: id,
    displayTitle: optional(fc.oneof(words, tricky)),
    displaySummary: optional(fc.oneof(words, tricky)),
    confirmationCode: optional(fc.stringMatching(/^\d\d$/)),
    payloadHash: optional(fc.stringMatching(/^[A-Za-z0-9+/=_:.-]{1,60}$/)),
    payload: optional(fc.stringMatching(/^"[A-Za-z0-9: {},]{1,60}"$/).filter((text) => !text.includes('  '))),
  })
  const challenge = fc.record({ challengeId: id, nonce: id, origin: fc.webUrl(), issuedAt: time, expiresAt: time })
  fc.assert(
    fc.property(
      fc.oneof(words, tricky),
      challenge,
      lines,
      fc.infiniteStream(fc.nat()),
      (appName, given, added, order) => {
        const whole: Challenge = { action: 'order.approve', ...given }
        const text = challengeMessage(appName, whole, { order: { kind: 'sign', ...added } })
        const [heading, ...rest] = text.split('\n')
        const weighed = rest.map((line) => [order.next().value as number, line] as const)
        const shuffled = weighed.sort(([a], [b]) => a - b).map(([, line]) => line)
        const expected = { appName, ...given, ...added }
        for (const one of [text, [heading, ...shuffled].join('\n')]) {
          expect(readSignedText(one)).toEqual(
            Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
          )
        }
      },
    ),
  )
})
