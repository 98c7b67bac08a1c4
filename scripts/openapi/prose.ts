import type { DescEnumValue, DescField, DescMethod } from '@bufbuild/protobuf'
import { reasons } from '../../src/shared/errors.ts'
import type { Commented, ProtoComments } from '../proto-comments.ts'

/** A comment of the protos, made a text of the document. */
export interface Prose {
  /** The first sentence, without a full stop. */
  readonly summary: string
  /** What follows the first sentence, in Markdown; empty if nothing does. */
  readonly details: string
  /** Both. */
  readonly whole: string
}

/** What comments say for the other protocols, and what REST has in its place. */
const restWording: readonly (readonly [said: RegExp, written: string])[] = [
  [/the time that RetryInfo and Retry-After give/g, 'the time that Retry-After gives'],
  [/ If it breaks rules of the schema, a buf\.validate\.Violations detail lists each of them .*? field\./g, ''],
  [/ A call whose content type the RPC does not take is answered with HTTP 415\./g, ''],
  [/ If the caller's deadline passes first, the stream ends with deadline_exceeded\./g, ''],
  [/Without after_sequence,/g, 'Without the sequence of a last event,'],
  // The other one is an RPC only.
  [/All calls but IntrospectSession act/g, 'All calls act'],
  [/the purpose LINK\b/g, 'the purpose `link`'],
]

/** Makes texts of the protos' comments: in Markdown, and with the names that REST has. */
export class Prosaist {
  readonly #comments: ProtoComments
  readonly #jsonNames: ReadonlyMap<string, string>
  readonly #operations: ReadonlyMap<string, string>
  readonly #unusedWording = new Set(restWording.map(([said]) => said))

  /** `fields` and `methods` are those that the texts can name. */
  constructor(comments: ProtoComments, fields: Iterable<DescField>, methods: Iterable<DescMethod>) {
    this.#comments = comments
    this.#jsonNames = new Map([...fields].map(({ name, jsonName }) => [name, jsonName]))
    this.#operations = new Map([...methods].map(({ name, localName }) => [name, localName]))
  }

  /** The text of a part. Throws if it has no comment. */
  of(desc: Exclude<Commented, { kind: 'file' }>): Prose {
    return this.#prose(this.#commentOf(desc), desc.name)
  }

  /** What a reason means, without the lines that say how each protocol spells it. */
  ofReason(desc: DescEnumValue): string {
    return this.#prose(this.#commentOf(desc).replace(/\nConnect: [\s\S]*$/, ''), desc.name).whole
  }

  /** Throws if a wording of another protocol is no longer in any of the texts that were made. */
  requireAllWordingUsed(): void {
    const [unused] = this.#unusedWording
    if (unused !== undefined) throw new Error(`no comment says ${unused} any more; take it off the list`)
  }

  #commentOf(desc: Commented): string {
    const comment = this.#comments.of(desc)
    if (comment === '') throw new Error(`${desc} has no comment`)
    return comment
  }

  #prose(comment: string, name: string): Prose {
    const text = this.#markdown(withoutSubject(this.#reworded(unwrapped(comment)), name))
    const { sentence, rest } = firstSentence(text)
    return { summary: sentence.replace(/\.$/, ''), details: rest, whole: text }
  }

  #reworded(text: string): string {
    return restWording.reduce((before, [said, written]) => {
      const after = before.replace(said, written)
      if (after !== before) this.#unusedWording.delete(said)
      return after
    }, text)
  }

  /** Names of fields, calls and reasons as REST has them, as code. */
  #markdown(text: string): string {
    return text
      .split(/(`[^`]*`)/)
      .map((part) => (part.startsWith('`') ? this.#named(part) : this.#marked(part)))
      .join('')
  }

  #named(code: string): string {
    return code.replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (name) => this.#jsonNames.get(name) ?? name)
  }

  #marked(text: string): string {
    return text
      .replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (name) => `\`${this.#jsonNames.get(name) ?? name}\``)
      .replace(/\b[A-Z]+(?:_[A-Z]+)+\b/g, (word) => (word in reasons ? `\`${word}\`` : word))
      .replace(/\b[A-Z][A-Za-z]+\b/g, (word) => {
        const operation = this.#operations.get(word)
        return operation === undefined ? word : `\`${operation}\``
      })
  }
}

/** Paragraphs without the line ends within them. */
function unwrapped(comment: string): string {
  return comment
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replaceAll('\n', ' '))
    .join('\n\n')
}

/** `IssueNonce creates a challenge` is `Creates a challenge`; `Session is the session` is `The session`. */
function withoutSubject(text: string, name: string): string {
  if (!text.startsWith(`${name} `)) return text
  const predicate = text.slice(name.length + 1).replace(/^is (?=the |a |an |what |one )/, '')
  return `${predicate.charAt(0).toUpperCase()}${predicate.slice(1)}`
}

function firstSentence(text: string): { sentence: string; rest: string } {
  const end = /\.(?=\s|$)/.exec(text)
  const length = end === null ? text.length : end.index + 1
  return { sentence: text.slice(0, length), rest: text.slice(length).trim() }
}
