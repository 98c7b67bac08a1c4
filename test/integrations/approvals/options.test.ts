import { expect, test } from 'vitest'
import {
  type ApprovalRequest,
  type ApprovalsOptions,
  createApprovals,
} from '../../../src/integrations/approvals/index.ts'
import { makeWallet } from '../../support/wallet.ts'

const options: ApprovalsOptions = {
  url: 'https://sign.example',
  startKey: 'a-start-key-of-thirty-two-letters',
  appName: 'Example',
  origin: 'https://app.example',
  fetch: () => {
    throw new Error('nothing is sent')
  },
}

test.each<[string, object]>([
  ['no url', { url: undefined }],
  ['a url of another scheme', { url: 'ftp://sign.example' }],
  ['a short start key', { startKey: 'short' }],
  ['a start key of two lines', { startKey: `${'a'.repeat(32)}\nb` }],
  ['no appName', { appName: '' }],
  ['no origin', { origin: 'app.example' }],
  ['an unknown adapter', { adapters: ['unknown'] }],
])('%s is refused at once', (_, wrong) => {
  expect(() => createApprovals({ ...options, ...wrong })).toThrow(TypeError)
})

test('the start key is in no message', () => {
  const startKey = 'secret secret secret secret secret secret'
  expect(() => createApprovals({ ...options, startKey })).toThrow(expect.not.stringContaining('secret'))
})

const wallet = { adapterId: 'nimiq', address: makeWallet().address }
const request: ApprovalRequest = { userId: 'user', wallets: [wallet], title: 'Delete', action: {} }

test.each<[string, object]>([
  ['no wallet', { wallets: [] }],
  ['six wallets', { wallets: Array.from({ length: 6 }, () => wallet) }],
  ['a wallet of an unknown adapter', { wallets: [{ ...wallet, adapterId: 'unknown' }] }],
  ['an address with wrong check digits', { wallets: [{ ...wallet, address: 'NQ00 CT4K' }] }],
  ['no address', { wallets: [{ adapterId: 'nimiq' }] }],
  ['no user', { userId: '' }],
  ['no title', { title: '' }],
])('with %s, nothing is asked', async (_, wrong) => {
  await expect(createApprovals(options).ask({ ...request, ...wrong })).rejects.toThrow(TypeError)
})

test('an action that is not JSON is refused before anything is asked', async () => {
  await expect(createApprovals(options).ask({ ...request, action: { amount: Number.NaN } })).rejects.toMatchObject({
    reason: 'ACTION_INVALID',
  })
})

test.each([
  ['https://sign.example', 'https://sign.example/api/auth/cross-device/start'],
  ['https://sign.example/', 'https://sign.example/api/auth/cross-device/start'],
  ['http://localhost:8080/sign/in/', 'http://localhost:8080/sign/in/cross-device/start'],
])('with the url %s, orders start at %s', async (url, address) => {
  const asked: string[] = []
  const fetch = async (to: string): Promise<Response> => {
    if (to.endsWith('/options')) return Response.json({})
    asked.push(to)
    return Response.json({ code: 'RATE_LIMITED', message: 'Too many' }, { status: 429 })
  }
  await expect(createApprovals({ ...options, url, fetch }).ask(request)).rejects.toMatchObject({
    reason: 'SERVICE_REFUSED',
    code: 'RATE_LIMITED',
    message: 'The service refused: RATE_LIMITED Too many',
  })
  expect(asked).toEqual([address])
})
