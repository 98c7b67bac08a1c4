import type { DescMethod } from '@bufbuild/protobuf'
import { type ErrorReason, reasons } from '../../src/shared/errors.ts'
import type { ProtoComments } from '../proto-comments.ts'
import { code, toHeading } from './markdown.ts'
import { rpcs } from './services.ts'

/** A page of docs/ that text is for. */
export type Page = 'protocol.md' | 'errors.md'

/** Begins the paragraph of an RPC's comment that lists the reasons for which it can fail. */
const errorsBegin = 'Errors: '

/** The paragraphs of an RPC's comment. */
export interface RpcComment {
  readonly paragraphs: readonly string[]
  /** The paragraph "Errors", without its first word. */
  readonly errors: string
}

/** Reads an RPC's comment. Throws if it lacks the paragraph "Errors". */
export function rpcComment(rpc: DescMethod, comments: ProtoComments): RpcComment {
  const all = paragraphsOf(comments.of(rpc))
  const errors = all.find((paragraph) => paragraph.startsWith(errorsBegin))
  if (errors === undefined)
    throw new Error(`The comment of ${rpc.name} has no paragraph that begins with "${errorsBegin}"`)
  return { paragraphs: all.filter((paragraph) => paragraph !== errors), errors: errors.slice(errorsBegin.length) }
}

/** The paragraphs of a comment, each in one line. */
function paragraphsOf(comment: string): string[] {
  return comment.split('\n\n').map((paragraph) => paragraph.replaceAll(/\s*\n\s*/g, ' '))
}

const reasonName: RegExp = new RegExp(`\\b(?:${Object.keys(reasons).join('|')})\\b`, 'g')
const rpcName: RegExp = new RegExp(`\\b(?:${rpcs.map(({ name }) => name).join('|')})\\b`, 'g')
const codeOrName: RegExp = new RegExp(
  [/`[^`]*`/, reasonName, rpcName, /\b[a-z]+(?:_[a-z0-9]+)+\b/].map(({ source }) => source).join('|'),
  'g',
)

/** The reasons that a text names. */
export function reasonsIn(text: string): ErrorReason[] {
  return (text.match(reasonName) ?? []) as ErrorReason[]
}

/**
 * Text of a comment in Markdown: reasons and RPCs become links, names of fields code. `page` is the page that the text
 * is for, `own` the name that the text is about, which is not a link.
 */
export function markdownOf(text: string, page: Page, own = ''): string {
  return text.replaceAll(codeOrName, (name) => {
    if (name === own || name.startsWith('`')) return name
    if (Object.hasOwn(reasons, name)) return toHeading(name, page === 'errors.md' ? '' : 'errors.md', code(name))
    if (rpcs.some((rpc) => rpc.name === name)) return toHeading(name, page === 'protocol.md' ? '' : 'protocol.md')
    return code(name)
  })
}
