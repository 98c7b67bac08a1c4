import { base64urlnopad } from '@scure/base'
import { canonicalPayload } from '../../core/order/canonical-payload.ts'
import { CountersignError } from '../../shared/errors.ts'
import { firstForbidden, orderingMarks } from '../../shared/plain-line.ts'
import { ApprovalError } from './error.ts'

/** Most arrays and objects inside each other in an action. The payload around it is one more. */
const maxDepth = 7

/** Most values in an action: one more than a payload of 8 KiB can have. */
const maxValues = 8192

/**
 * Takes an action over, once, and returns the payload to be signed. Later changes of `action` have no effect on it. A
 * nonce makes it differ from every other payload, so that no proof of another approval fits.
 *
 * Throws ACTION_INVALID for everything that is not plain JSON: getters and other code that JSON.stringify would run,
 * what it would leave out or rewrite, and what an order's payload cannot have.
 */
export function payloadOf(action: unknown): string {
  const nonce = base64urlnopad.encode(crypto.getRandomValues(new Uint8Array(32)))
  const text = new ActionReader().read(action, 'action', 1)
  const payload = `{"typ":"countersign/action","action":${text},"nonce":"${nonce}"}`
  try {
    canonicalPayload(payload)
  } catch (cause) {
    if (cause instanceof CountersignError) throw invalid(cause.message.replace(/^payload /, ''), cause)
    throw cause
  }
  return payload
}

/** The action of a payload that was signed. */
export function actionOf(payload: string): unknown {
  return JSON.parse(payload).action
}

/** Writes a value as JSON. Each property is looked at once. */
class ActionReader {
  #values = 0

  /** `place` is where the value is, in words of the caller's code: `action.items[0].price`. */
  read(value: unknown, place: string, depth: number): string {
    this.#values += 1
    if (this.#values > maxValues) throw invalid('is too large')
    if (value === null || typeof value === 'boolean') return JSON.stringify(value)
    if (typeof value === 'string') return written(value, place)
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw invalid('has a number that is not finite')
      // JSON has 0 only, so what would run is not what was given.
      if (Object.is(value, -0)) throw invalid('has the number -0')
      return JSON.stringify(value)
    }
    if (typeof value !== 'object') throw invalid(`has a value of type ${typeof value}`)
    // An object that contains itself ends here, too.
    if (depth > maxDepth) throw invalid(`has more than ${maxDepth} levels`)
    return Array.isArray(value) ? this.#array(value, place, depth) : this.#object(value, place, depth)
  }

  #array(array: readonly unknown[], place: string, depth: number): string {
    const { length } = array
    const items: string[] = []
    for (let index = 0; index < length; index += 1) {
      items.push(this.#property(array, String(index), `${place}[${index}]`, depth))
    }
    // The one key more is `length`.
    if (Reflect.ownKeys(array).length !== length + 1) throw invalid('has an array with names')
    return `[${items.join(',')}]`
  }

  #object(object: object, place: string, depth: number): string {
    const prototype = Object.getPrototypeOf(object)
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) throw invalid('has an object of a class')
    const members = Reflect.ownKeys(object).map((name) => {
      if (typeof name === 'symbol') throw invalid('has a value of type symbol')
      const member = /^\w{1,40}$/.test(name) ? `${place}.${name}` : `a member of ${place}`
      return `${written(name, `a name in ${place}`)}:${this.#property(object, name, member, depth)}`
    })
    return `{${members.join(',')}}`
  }

  #property(of: object, name: string, place: string, depth: number): string {
    const property = Object.getOwnPropertyDescriptor(of, name)
    if (property?.enumerable === false) throw invalid('has a hidden property')
    // Neither a hole of an array nor a getter has a value.
    return this.read(property?.value, place, depth + 1)
  }
}

/** A text as JSON. Refuses one that no line of a text to be signed can have, and says what to do instead. */
function written(text: string, place: string): string {
  const found = firstForbidden(text)
  if (found === undefined) return JSON.stringify(text)
  const { index, name } = found
  const wayOut = (text[index] ?? '').replace(orderingMarks, '') === '' ? amountsApart : 'leave it out'
  throw invalid(`cannot have ${name}, which is character ${index + 1} of ${place}: ${wayOut}`)
}

/** What to do about the marks of `Intl` for people who write from right to left. */
const amountsApart = 'give an amount as a number and a currency code, and write it for people in the title'

/** Quotes no value of the action, which can be secret. */
function invalid(what: string, cause?: unknown): ApprovalError {
  return new ApprovalError('ACTION_INVALID', `The action ${what}`, { cause })
}
