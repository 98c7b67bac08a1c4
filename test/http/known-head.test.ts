import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { KnownHead, writeKnownHead } from '../../src/http/known-head.ts'
import { type Answer, ResponseOutput } from '../../src/http/output.ts'

const before = { vary: 'Origin', 'access-control-allow-origin': 'https://app.example' }
const head = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const own = { 'set-cookie': ['a=1; Path=/', 'b=2; Path=/'], 'set-auth-token': 'token' }

/** Everything that a server which gives this answer sends for these bytes. */
async function sentFor(request: string, answer: Answer): Promise<string> {
  const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
    const output = new ResponseOutput(response, 65)
    output.setHeaders(before)
    output.send(answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  // The client's end lets the server close the connection behind its last answer.
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').end(request)
  return await text(socket)
}

/** Lines in any order; all answers of a test have the same date. */
function linesOf(sent: string): string[] {
  return sent
    .replaceAll(/^Date: .*$/gm, 'Date')
    .split('\r\n')
    .sort()
}

const get = 'GET / HTTP/1.1\r\nhost: a\r\n'

test.each([
  ['one request', `${get}\r\n`],
  ['two requests at once', `${get}\r\n${get}\r\n`],
  ['a request that closes the connection', `${get}connection: close\r\n\r\n`],
  ['a request of HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ['a HEAD request', 'HEAD / HTTP/1.1\r\nhost: a\r\n\r\n'],
  [
    'a request that waits for 100 (Continue)',
    'POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}',
  ],
])('for %s, an answer with a known head is sent as node:http sends it', async (_, request) => {
  for (const body of ['{"text":"é"}', Buffer.from('{}'), '']) {
    const known = await sentFor(request, { status: 200, head, headers: own, body })
    const usual = await sentFor(request, { status: 200, headers: { ...head, ...own }, body })
    expect(known).toContain('set-cookie: b=2; Path=/\r\n')
    expect(linesOf(known)).toEqual(linesOf(usual))
  }
})

test('answers that have a head in common have the headers that were set for each', async () => {
  const other = { vary: 'Origin' }
  const heads: unknown[] = []
  const server = createServer((_, response) => {
    const output = new ResponseOutput(response, 65)
    output.setHeaders(heads.length % 2 === 0 ? before : other)
    output.send({ status: 200, head, body: '{}' })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  for (let turn = 0; turn < 4; turn++) {
    const { headers } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    heads.push(headers.get('access-control-allow-origin'))
  }
  expect(heads).toEqual(['https://app.example', null, 'https://app.example', null])
})

test('this version of Node.js can write a known head', () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  expect(writeKnownHead(response, 'vary: Origin\r\n', { 'content-length': 0 })).toBe(true)
  expect(response.headersSent).toBe(true)
})

test.each([{ 'a\r\nb': 'c' }, { a: 'b\r\nc: d' }, { a: 'b\n' }, { 'a b': 'c' }])(
  'a head that would end a line is refused: %j',
  (headers) => {
    expect(() => new KnownHead(headers).lines).toThrow(/^Invalid character in header|^Header name must be a valid/)
  },
)

test('a header of its own that would end a line is refused, and nothing is sent', () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const output = new ResponseOutput(response, 65)
  expect(() => output.send({ status: 200, head, headers: { 'set-auth-token': 'a\r\nb: c' }, body: '{}' })).toThrow(
    'Invalid character in header',
  )
  expect(output.begun).toBe(false)
})
