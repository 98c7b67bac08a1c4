// node --test examples/custom-store/map-store.test.ts
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCountersign } from 'countersign'
import { describeStoreContract } from 'countersign/testing'
import { MapStore } from './map-store.ts'

describeStoreContract(
  { describe, test },
  {
    name: 'the store over a Map',
    // Only one handle can reach a Map: it is handed out twice.
    async open() {
      const store = new MapStore()
      return [store, store]
    },
  },
)

test('a service runs on it', async (t) => {
  const service = await createCountersign({ store: new MapStore(), port: 0, host: '127.0.0.1' })
  t.after(() => service.close(0))
  const url = `http://localhost:${await service.listen()}`
  const response = await fetch(`${url}/api/auth/wallet/nonce`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  assert.equal(response.status, 200)
  assert.equal(service.description.store, 'a Map in memory')
})
