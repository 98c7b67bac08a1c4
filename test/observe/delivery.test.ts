import { expect, test } from 'vitest'
import { DeliveryQueue } from '../../src/observe/delivery.ts'
import { memoryStore } from '../support/memory-store.ts'

test('an event that two instances have read as due is delivered by one of them', async () => {
  const store = await memoryStore()
  const [first, second] = [new DeliveryQueue(store, 'event'), new DeliveryQueue(store, 'event')]
  await first.add({ id: 'only', time: store.now() }, false)
  const [due, alsoDue] = [await first.due(), await second.due()]
  expect(alsoDue).toEqual(due)
  expect((await first.claim(due)).map(({ event }) => event.id)).toEqual(['only'])
  expect(await second.claim(alsoDue)).toEqual([])
})
