import { expect, test, vi } from 'vitest'
import { repeatedReply, writtenAs } from '../../src/rpc/repeated-reply.ts'

test('a repeated reply is written once in each form', () => {
  const reply = repeatedReply({ id: 'one' })
  const write = vi.fn(({ id }: { id: string }) => `json ${id}`)
  const writeOtherwise = vi.fn(({ id }: { id: string }) => `proto ${id}`)
  for (let time = 0; time < 3; time++) {
    expect(writtenAs('json', reply, write)).toBe('json one')
    expect(writtenAs('proto', reply, writeOtherwise)).toBe('proto one')
  }
  expect(write).toHaveBeenCalledTimes(1)
  expect(writeOtherwise).toHaveBeenCalledTimes(1)
})

test('two repeated replies that are equal are written each for itself', () => {
  const write = vi.fn((reply: object) => JSON.stringify(reply))
  const replies = [repeatedReply({ id: 'one' }), repeatedReply({ id: 'two' }), repeatedReply({ id: 'two' })]
  expect(replies.map((reply) => writtenAs('json', reply, write))).toEqual([
    '{"id":"one"}',
    '{"id":"two"}',
    '{"id":"two"}',
  ])
  expect(write).toHaveBeenCalledTimes(3)
})

test('any other reply is written each time', () => {
  const reply = { id: 'one' }
  expect(writtenAs('json', reply, JSON.stringify)).toBe('{"id":"one"}')
  reply.id = 'two'
  expect(writtenAs('json', reply, JSON.stringify)).toBe('{"id":"two"}')
})
