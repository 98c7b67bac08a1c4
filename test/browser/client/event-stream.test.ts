import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maxEventLength, readEventStream, type ServerSentEvent } from '../../../src/browser/client/event-stream.ts'

/** A stream of these pieces; `cancelled` tells whether its reader has left. */
function streamOf(pieces: Iterable<Uint8Array<ArrayBuffer>>, ends = true) {
  const state = { cancelled: false }
  const waiting = pieces[Symbol.iterator]()
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const { done, value } = waiting.next()
      if (!done) controller.enqueue(value)
      else if (ends) controller.close()
    },
    cancel() {
      state.cancelled = true
    },
  })
  return { body, state }
}

async function read(pieces: Iterable<Uint8Array<ArrayBuffer>>): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = []
  for await (const event of readEventStream(streamOf(pieces).body)) events.push(event)
  return events
}

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const parse = async (text: string): Promise<ServerSentEvent[]> => await read([bytesOf(text)])
const data = async (text: string): Promise<string[]> => (await parse(text)).map((event) => event.data)

describe('fields', () => {
  test.each<[string, string, Partial<ServerSentEvent>[]]>([
    [
      'an event has its data, its name and its id',
      'event: a\nid: 7\ndata: x\n\n',
      [{ name: 'a', data: 'x', lastEventId: '7' }],
    ],
    ['an event without a name is a message', 'data: x\n\n', [{ name: 'message', data: 'x', lastEventId: '' }]],
    [
      'an id stands for the later events too',
      'id: 7\ndata: x\n\ndata: y\n\n',
      [{ lastEventId: '7' }, { lastEventId: '7' }],
    ],
    ['an empty id resets it', 'id: 7\ndata: x\n\nid\ndata: y\n\n', [{ lastEventId: '7' }, { lastEventId: '' }]],
    ['an id of an event without data counts', 'id: 7\n\ndata: y\n\n', [{ lastEventId: '7' }]],
    [
      'an id with NUL is ignored',
      'id: 7\ndata: x\n\nid: 8\0\ndata: y\n\n',
      [{ lastEventId: '7' }, { lastEventId: '7' }],
    ],
    ['a name holds for one event', 'event: a\ndata: x\n\ndata: y\n\n', [{ name: 'a' }, { name: 'message' }]],
    ['a name of an event without data is dropped', 'event: a\n\ndata: y\n\n', [{ name: 'message', data: 'y' }]],
    ['lines of data are joined', 'data: x\ndata:\ndata: y\n\n', [{ data: 'x\n\ny' }]],
    ['data without a value is an event', 'data\n\n', [{ data: '' }]],
    [
      'one space after the colon is dropped',
      'data:x\n\ndata: x\n\ndata:  x\n\n',
      [{ data: 'x' }, { data: 'x' }, { data: ' x' }],
    ],
    ['colons in a value stay', 'data: {"a":1}\n\n', [{ data: '{"a":1}' }]],
    ['comments and unknown fields are ignored', ': data: c\nretry: 5\nDATA: z\n data: z\ndata: x\n\n', [{ data: 'x' }]],
    ['an event that is cut off is dropped', 'data: x\n\ndata: y\n', [{ data: 'x' }]],
    ['a byte order mark is dropped', '\uFEFFdata: x\n\n', [{ data: 'x' }]],
  ])('%s', async (_, text, events) => {
    const read = await parse(text)
    expect(read).toMatchObject(events)
    expect(read).toHaveLength(events.length)
  })

  test.each(['\n', '\r\n', '\r'])('lines may end with %j', async (end) => {
    expect(await data(['data: x', 'data: y', '', 'data: z', '', ''].join(end))).toEqual(['x\ny', 'z'])
  })
})

/** A line of a stream, with everything that the parser must tell apart. */
const line = fc.oneof(
  fc.constantFrom('', '', ': comment', ':', 'data', 'id', 'event', 'retry: 10', 'event: heartbeat', 'id: 3'),
  fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => `data: ${text.replace(/[\r\n]/g, ' ')}`),
)

const streamText = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 12 })
  .map((lines) => lines.map(([text, end]) => text + end).join(''))

test('a stream reads the same wherever it is cut in two', async () => {
  await fc.assert(
    fc.asyncProperty(streamText, async (text) => {
      const bytes = bytesOf(text)
      const whole = await read([bytes])
      for (let cut = 0; cut <= bytes.length; cut++) {
        expect(await read([bytes.slice(0, cut), bytes.slice(cut)])).toEqual(whole)
      }
      expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
    }),
    { numRuns: 60 },
  )
})

test('an event arrives with its last byte, not with the next event', async () => {
  for (const text of ['data: x\n\n', 'data: x\r\n\r\n', 'data: x\r\r']) {
    const { body } = streamOf([bytesOf(text)], false)
    const events = readEventStream(body)
    expect((await events.next()).value).toMatchObject({ data: 'x' })
    await events.return()
  }
})

test('a reader that leaves cancels the stream', async () => {
  const { body, state } = streamOf([bytesOf('data: x\n\n')], false)
  for await (const _ of readEventStream(body)) break
  await expect.poll(() => state.cancelled).toBe(true)
})

describe('an endless event is refused', () => {
  const refused = { code: 'UNEXPECTED_ANSWER' }
  const endlessly = function* (text: string) {
    const bytes = bytesOf(text.repeat(1 + Math.floor(8192 / text.length)))
    // Enough to fail a test of memory, and an end, so that a parser without a bound fails instead of hanging.
    for (let index = 0; index < 64; index++) yield bytes.slice()
  }

  test.each(['x', 'data: x\n', 'id: 1\n', 'event: a\r\n', 'unknown: x\r'])('of %j', async (text) => {
    const { body, state } = streamOf(endlessly(text))
    await expect(readEventStream(body).next()).rejects.toMatchObject(refused)
    await expect.poll(() => state.cancelled).toBe(true)
  })

  test('but a stream may have any number of events and of comments', async () => {
    expect(await read(endlessly('data: x\n\n'))).toHaveLength(64 * 911)
    expect(await read(endlessly(': still here\n'))).toEqual([])
  })

  test('the bound is on the event as a whole', async () => {
    const longest = 'x'.repeat(maxEventLength - 'data: '.length)
    expect(await data(`data: ${longest}\n\n`)).toEqual([longest])
    await expect(data(`data: ${longest}x\n\n`)).rejects.toMatchObject(refused)
  })
})
