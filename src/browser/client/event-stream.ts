import { CountersignClientError } from './errors.ts'

/** A server-sent event. */
export interface ServerSentEvent {
  /** Name of the event; `message` if the stream gives none. */
  readonly name: string
  /** Data of the event; its lines are joined by line feeds. */
  readonly data: string
  /** The newest id of the stream so far; empty if there is none. */
  readonly lastEventId: string
}

/** Longest event that is read, in UTF-16 code units. An event of an order has about 200. */
export const maxEventLength = 65_536

/**
 * The events of a stream, by the rules of WHATWG HTML, section 9.2.6. `retry` fields are ignored: the client has waits
 * of its own. An event that the end of the stream cuts off is dropped. Rejects with UNEXPECTED_ANSWER if an event is
 * longer than {@link maxEventLength}, and with the stream's own error. Cancels the stream when the caller stops
 * reading.
 */
export async function* readEventStream(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  const parser = new EventStreamParser()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield* parser.push(value)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Parses the text of an event stream, in pieces that may be cut anywhere. */
class EventStreamParser {
  /** The beginning of a line whose end has not arrived. */
  #line = ''
  #endedWithCarriageReturn = false
  #name = ''
  #data: string[] = []
  /** Length of all that has arrived of the current event. */
  #length = 0
  #lastEventId = ''

  /** Takes the next piece of the text and returns the events that it completes. */
  push(piece: string): ServerSentEvent[] {
    // The line has ended already. To wait for the line feed would hold back an event until the next one.
    const text = this.#endedWithCarriageReturn && piece.startsWith('\n') ? piece.slice(1) : piece
    this.#endedWithCarriageReturn = piece.endsWith('\r')
    const lines = text.split(/\r\n|\n|\r/)
    const rest = lines.pop() ?? ''
    const events: ServerSentEvent[] = []
    for (const end of lines) {
      this.#count(end.length)
      const event = this.#endLine(this.#line + end)
      this.#line = ''
      if (event !== undefined) events.push(event)
    }
    this.#count(rest.length)
    this.#line += rest
    return events
  }

  #count(length: number): void {
    this.#length += length
    if (this.#length > maxEventLength) {
      throw new CountersignClientError('UNEXPECTED_ANSWER', `An event is too long`)
    }
  }

  /** Reads a line: a field, a comment, or the empty line that ends an event. */
  #endLine(line: string): ServerSentEvent | undefined {
    if (line === '') return this.#endEvent()
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') this.#name = value
    else if (field === 'data') this.#data.push(value)
    else if (field === 'id' && !value.includes('\0')) this.#lastEventId = value
    // Comments have no field. A long-lived stream may have any number of them without an event in between.
    else if (field === '') this.#length -= line.length
    return undefined
  }

  #endEvent(): ServerSentEvent | undefined {
    const [name, lines] = [this.#name || 'message', this.#data]
    this.#name = ''
    this.#data = []
    this.#length = 0
    return lines.length === 0 ? undefined : { name, data: lines.join('\n'), lastEventId: this.#lastEventId }
  }
}
