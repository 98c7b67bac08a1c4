import { alreadyRead, bodyTooLarge, endedEarly, type RequestBody } from '../wire/body.ts'

/** The body of a `Request`. */
export class FetchBody implements RequestBody {
  readonly decompressed = false
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  async read<Used>(maxBytes: number, use: (bytes: Buffer) => Used | Promise<Used>): Promise<Used> {
    return await use(await this.#bytes(maxBytes))
  }

  async *chunks(maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
    yield await this.#bytes(maxBytes)
  }

  drop(): void {
    const { body } = this.#request
    if (body !== null && !body.locked) void dropRest(body.getReader())
  }

  async #bytes(maxBytes: number): Promise<Buffer> {
    const { body, headers } = this.#request
    if (this.#request.bodyUsed || body?.locked === true) throw alreadyRead()
    if (body === null) return Buffer.alloc(0)
    if (Number(headers.get('content-length') ?? 0) > maxBytes) {
      this.drop()
      throw bodyTooLarge()
    }
    return await readStream(body, maxBytes)
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

async function readStream(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw endedEarly(cause)
    })
    if (done) return Buffer.concat(chunks)
    size += value.byteLength
    if (size > maxBytes) {
      // Not cancelled: a server may then cut the connection before the client has read the answer.
      void dropRest(reader)
      throw bodyTooLarge()
    }
    chunks.push(value)
  }
}

async function dropRest(reader: Reader): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // The client has gone.
  }
}
