import type { Session } from '../../../src/core/users/host.ts'
import { maxOffsetMs, Violation, type World } from '../world.ts'
import { type Answer, sessionLife } from './service.ts'

/** What something that a browser or an application has goes by. Moments are counts of what has happened. */
export interface Holding {
  readonly session: Session
  /** Absent for the session itself. */
  readonly clientId?: string
  /** Whether it outlives the session. */
  readonly isOffline: boolean
  /** When the request that gave it began. */
  readonly began: number
  /** When that was answered. */
  readonly given: number
}

/** Something that ends holdings. */
interface End {
  readonly words: string
  readonly fits: (holding: Holding) => boolean
  readonly began: number
  ended: number
  /** Whether it was answered that it is done. */
  isCertain: boolean
  /** Whether it can end something at all. */
  isPossible: () => boolean
}

/** What a user allowed an application, on a page of consent. */
interface Consent {
  readonly userId: string
  readonly clientId: string
  readonly scopes: readonly string[]
  ended: number
  /** When it was taken back. */
  over: number
}

interface Use {
  readonly began: number
  readonly beganAt: number
  /** Absent while it is under way, and after an answer that was lost. */
  granted?: { readonly at: number; readonly moment: number } | false
}

/** Something that counts once: a code, a refresh token, a code of a device. */
export interface Secret {
  readonly kind: 'code' | 'refresh token' | 'device code'
  readonly text: string
  readonly holding: Holding
  readonly givenAt: number
  readonly lifeMs: number
  /** Time in ms for which it counts again after its use; `Infinity` if it counts any number of times. */
  readonly graceMs: number
  readonly uses: Use[]
}

/** A use that has begun. `done` takes the answer; `undefined` if it was lost. */
interface Used {
  readonly began: number
  readonly done: (answer: Answer | undefined) => void
}

/** What the clocks of two instances can differ by, and what the issuer tolerates of a difference, in ms. */
export const tolerance = 2 * maxOffsetMs + 5000

/** What was answered, and whether it may be so. */
export class Facts {
  readonly states = new Set<string>()
  /** Number of codes and tokens that were given. */
  given = 0
  readonly #world: World
  readonly #ends: End[] = []
  readonly #consents: Consent[] = []
  readonly #onward = new Map<string, number>()
  #moment = 0

  constructor(world: World) {
    this.#world = world
  }

  require(holds: boolean, words: string): void {
    if (!holds) throw new Violation(words)
  }

  /** The next moment. */
  tick(): number {
    return ++this.#moment
  }

  /** Begins to end holdings. The returned function says whether it is done for certain. */
  end(
    words: string,
    fits: (holding: Holding) => boolean,
    isPossible: () => boolean = () => true,
  ): (isCertain: boolean) => void {
    const never = Number.POSITIVE_INFINITY
    const end: End = { words, fits, began: this.tick(), ended: never, isCertain: false, isPossible }
    this.#ends.push(end)
    return (isCertain) => {
      const wasPossible = isPossible()
      end.isPossible = () => wasPossible
      end.ended = this.tick()
      end.isCertain = isCertain
    }
  }

  /** Whether something may have ended a holding. */
  mayBeOver(holding: Holding): boolean {
    const { createdAt } = holding.session
    const isOld = this.#world.now > createdAt + sessionLife.idle * 1000 - tolerance
    if (isOld && !holding.isOffline) return true
    return this.#ends.some((end) => end.ended >= holding.began && end.fits(holding) && end.isPossible())
  }

  /**
   * Notes that a session has asked for something for an application. If the session ends meanwhile, all that the
   * application has of it may end, offline access included.
   */
  asked(session: Holding | undefined, clientId: string): void {
    if (session === undefined || !this.mayBeOver(session)) return
    const { id } = session.session
    this.end('a request too late', (each) => each.session.id === id && each.clientId === clientId)(false)
  }

  /** What had ended a holding for certain before a moment; `undefined` if nothing had. */
  overBefore(holding: Holding, moment: number, at: number): string | undefined {
    const { expiresAt, createdAt } = holding.session
    if (!holding.isOffline && at > Math.max(expiresAt, createdAt + sessionLife.most * 1000) + tolerance) {
      return 'its session has expired'
    }
    return this.#ends.find(
      (end) => end.isCertain && end.ended < moment && end.began > holding.given && end.fits(holding),
    )?.words
  }

  /** Notes that a user allows something. The returned function says that the call has ended. */
  consent(userId: string, clientId: string, scopes: readonly string[]): () => void {
    const never = Number.POSITIVE_INFINITY
    const consent = { userId, clientId, scopes, ended: never, over: never }
    this.#consents.push(consent)
    return () => {
      consent.ended = this.tick()
    }
  }

  /** Notes that what a user had allowed before a moment is taken back. */
  takeBackConsents(userId: string, clientId: string | undefined, before: number): void {
    for (const each of this.#consents) {
      const isIts = each.userId === userId && (clientId === undefined || each.clientId === clientId)
      if (isIts && each.ended < before) each.over = Math.min(each.over, this.tick())
    }
  }

  /** All that a user had allowed an application at a moment. */
  allowed(userId: string, clientId: string, moment: number): ReadonlySet<string> {
    const its = this.#consents.filter(
      (each) => each.userId === userId && each.clientId === clientId && each.over > moment,
    )
    return new Set(its.flatMap(({ scopes }) => scopes))
  }

  /** Notes that an interaction, or a pushed request, has gone on. */
  goesOn(name: string, words: string): void {
    const times = (this.#onward.get(name) ?? 0) + 1
    this.#onward.set(name, times)
    this.require(times === 1, `${words} twice`)
  }

  /** Begins to use something that counts once. */
  use(secret: Secret, words: string): Used {
    const { holding, uses, graceMs, kind } = secret
    const use: Use = { began: this.tick(), beganAt: this.#world.now }
    uses.push(use)
    const isRepeated = uses.length > 1 && graceMs !== Number.POSITIVE_INFINITY
    const { session, clientId } = holding
    // What goes by a grant that has ended ends no other.
    const wasHeld = !this.mayBeOver(holding)
    const firstAt = Math.min(...uses.map(({ beganAt }) => beganAt))
    // Within the grace time, a second use ends nothing.
    const isLateOrSo = (): boolean => this.#world.now >= firstAt + graceMs - 2 * maxOffsetMs
    const fits = (each: Holding): boolean => each.session.id === session.id && each.clientId === clientId
    const end = isRepeated ? this.end('a second use', fits, isLateOrSo) : undefined
    const { began } = use
    const done = (answer: Answer | undefined): void => {
      const { now } = this.#world
      // Of the other uses, the first that was granted.
      const granted = uses.flatMap((each) => (each !== use && each.granted ? [each.granted] : []))
      const isLate = granted.some(({ at, moment }) => {
        return use.began > moment && (graceMs === 0 || use.beganAt > at + graceMs + tolerance)
      })
      if (answer === undefined) {
        end?.(false)
        return
      }
      if (answer.status === 200) {
        this.given++
        use.granted = { at: now, moment: this.tick() }
        end?.(false)
        const isTwice = graceMs === 0 ? granted.length > 0 : isLate
        this.require(!isTwice, `${words}: a ${kind} is used twice`)
        const over = this.overBefore(holding, use.began, use.beganAt)
        this.require(over === undefined, `${words}: a ${kind} counts although ${over}`)
        this.require(
          use.beganAt < secret.givenAt + secret.lifeMs + tolerance,
          `${words}: a ${kind} counts for too long`,
        )
        return
      }
      use.granted = false
      const isInvalid = answer.json.error === 'invalid_grant'
      const mayHaveExpired = now > secret.givenAt + secret.lifeMs - tolerance
      // A code of a device that comes again ends nothing; neither does what is forgotten.
      end?.(isInvalid && isLate && wasHeld && kind !== 'device code' && !mayHaveExpired)
      if (!isInvalid) return
      const mayBeUsed = uses.length > 1 && isLateOrSo()
      const isExplained = mayBeUsed || mayHaveExpired || this.mayBeOver(holding)
      this.require(
        isExplained,
        `${words}: a ${kind} is refused that has not been used: ${answer.json.error_description}`,
      )
    }
    return { began, done }
  }
}
