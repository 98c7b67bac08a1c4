import { Code, ConnectError } from '@connectrpc/connect'
import * as grpc from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'
import { endingOf, type Wire } from '../../src/wire/wire.ts'
import { rest } from '../support/rest.ts'
import { startService } from '../support/service.ts'

test('a refusal over gRPC is the sentence of REST, as @grpc/grpc-js shows it', async () => {
  const { url } = await startService()
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure())
  onTestFinished(() => client.close())
  const refused = async (origin: string): Promise<string | undefined> => {
    const metadata = new grpc.Metadata()
    metadata.set('origin', origin)
    const path = '/countersign.v1.SignInService/IssueNonce'
    const asIs = (bytes: Buffer): Buffer => bytes
    return await new Promise((resolve) =>
      client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), metadata, {}, (error) => resolve(error?.details)),
    )
  }
  for (const origin of ['https://evil.example:8443', 'no origin, 100% of it']) {
    const { json } = await rest(url, '/wallet/nonce', {}, { origin })
    expect(json.message).toMatch(/[:,]/)
    expect(await refused(origin)).toBe(json.message)
  }
})

test.each(['grpc', 'grpc-web'] as const)(
  'of a message over %s, only % and what is no visible ASCII is encoded',
  (protocol) => {
    const visible = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)).join('')
    const wire = { protocol, base64: false } as Wire
    const ending = endingOf(wire, new ConnectError(`${visible}\r\n\u007fü€😀`, Code.NotFound)) as {
      trailers?: Record<string, string>
      body?: Buffer
    }
    const message = `${visible.replace('%', '%25')}%0D%0A%7F%C3%BC%E2%82%AC%F0%9F%98%80`
    if (protocol === 'grpc') expect(ending.trailers).toMatchObject({ 'grpc-status': '5', 'grpc-message': message })
    else expect(String(ending.body?.subarray(5)).split('\r\n')).toContain(`grpc-message: ${message}`)
  },
)
