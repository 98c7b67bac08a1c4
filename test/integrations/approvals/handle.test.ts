import { expect, test } from 'vitest'
import { Handles, type OpenOrder } from '../../../src/integrations/approvals/handle.ts'

const startKey = 'a start key of thirty-two letters'
const order: OpenOrder = {
  id: 'order',
  desktopToken: 'the-desktop-token',
  url: 'https://sign.example/api/auth/inbox?order=order',
  expiresAt: 1,
  until: 2,
  payload: '{"typ":"countersign/action"}',
  wallets: [{ adapterId: 'nimiq', address: 'NQ71 CT4K 7R9R EHSB 7HY9 TSTP XNRQ L2RK 8U4U' }],
}
const invalid = expect.objectContaining({ name: 'ApprovalError', reason: 'HANDLE_INVALID' })

test('a handle opens in another process with the same start key', async () => {
  const handle = await new Handles(startKey).seal(order)
  expect(await new Handles(startKey).open(handle)).toStrictEqual(order)
})

test('a handle shows nothing, and none is like another', async () => {
  const handles = new Handles(startKey)
  const handle = await handles.seal(order)
  expect(handle).toMatch(/^[\w-]+$/)
  expect(Buffer.from(handle, 'base64url').toString('latin1')).not.toContain(order.desktopToken)
  expect(await handles.seal(order)).not.toBe(handle)
})

test('a handle of another start key is refused', async () => {
  const handle = await new Handles('another start key of 32 letters..').seal(order)
  await expect(new Handles(startKey).open(handle)).rejects.toThrow(invalid)
})

test('a handle that was changed at any place is refused', async () => {
  const handles = new Handles(startKey)
  const bytes = Buffer.from(await handles.seal(order), 'base64url')
  for (const index of bytes.keys()) {
    const changed = Buffer.from(bytes)
    changed[index] = changed[index]! ^ 1
    await expect(handles.open(changed.toString('base64url'))).rejects.toThrow(invalid)
  }
})

test.each(['', 'x', 'not base64url!', 'AAAA', '{"id":"order"}', Buffer.alloc(12).toString('base64url')])(
  'the text %j is no handle',
  async (text) => {
    await expect(new Handles(startKey).open(text)).rejects.toThrow(invalid)
  },
)

test('a longer or shorter handle is refused', async () => {
  const handles = new Handles(startKey)
  const handle = await handles.seal(order)
  await expect(handles.open(handle.slice(0, -4))).rejects.toThrow(invalid)
  await expect(handles.open(`${handle}AAAA`)).rejects.toThrow(invalid)
})
