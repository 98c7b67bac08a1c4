import type { Session } from '../../../src/core/users/host.ts'
import { maxOffsetMs, Violation, type World } from '../world.ts'
import { allows, type Files } from './files.ts'
import { type Answer, sessionLife } from './service.ts'

/** What something that a browser or an application has goes by. Moments are counts of what has happened. */
export interface Holding {
  readonly session: Session
  /** When the session was given. */
  readonly since: number
  /** Absent for the session itself. */
  readonly clientId?: string
  /** Whether it outlives the session. */
  readonly isOffline: boolean
  /** When the request that gave it began. */
  readonly began: number
  /** When that was answered. */
  readonly given: number
}

/** What an end is, beside what it ends. */
interface EndOptions {
  /** Whether it can end something at all. Default: yes. */
  readonly isPossible?: () => boolean
  /** Whether it takes sessions away, so that nothing of them counts that is given later either. Default: no. */
  readonly takesSessions?: boolean
  /** Whether it keeps what fits from coming back. Default: no. */
  readonly lasts?: () => boolean
}

/** Something that ends holdings. */
interface End extends Required<Omit<EndOptions, 'isPossible'>> {
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
  readonly session: Session
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly began: number
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

const never = Number.POSITIVE_INFINITY

/** What the clocks of two instances can differ by, and what the issuer tolerates of a difference, in ms. */
export const tolerance = 2 * maxOffsetMs + 5000

/** What was answered, and whether it may be so. */
export class Facts {
  /** Distinct states in which codes and tokens were used. */
  readonly states = new Set<string>()
  /** Number of codes and tokens that were given. */
  given = 0
  readonly #world: World
  readonly #ends: End[] = []
  readonly #consents: Consent[] = []
  readonly #onward = new Map<string, number>()
  /** Files of each edit, and when no process had older ones any more. */
  readonly #edits: { readonly files: Files; inForce: number }[] = []
  #moment = 0

  constructor(world: World) {
    this.#world = world
  }

  require(holds: boolean, words: string): void {
    if (!holds) throw new Violation(words)
  }

  /** Notes an edit of the files, or those of the start. */
  edited(files: Files): void {
    this.#edits.push({ files, inForce: this.#edits.length === 0 ? 0 : never })
  }

  /** Notes that each process has the files of an edit, or later ones. */
  inForce(edit: number): void {
    for (const each of this.#edits.slice(0, edit + 1)) if (each.inForce === never) each.inForce = this.tick()
  }

  /** Files that a call of this beginning may have been answered by. */
  filesSince(moment: number): readonly Files[] {
    const first = this.#edits.findLastIndex(({ inForce }) => inForce < moment)
    return this.#edits.slice(Math.max(0, first)).map(({ files }) => files)
  }

  /** Why the files do not let a holding count at a call; `undefined` if some of those in force do. */
  notListed({ session, clientId }: Pick<Holding, 'session' | 'clientId'>, moment: number): string | undefined {
    const isAllowed = this.filesSince(moment).some((files) => allows(files, session, clientId))
    return isAllowed ? undefined : 'its user is not listed for it'
  }

  /** The next moment. */
  tick(): number {
    return ++this.#moment
  }

  /** Begins to end holdings. The returned function says whether it is done for certain. */
  end(
    words: string,
    fits: (holding: Holding) => boolean,
    { isPossible = () => true, takesSessions = false, lasts = () => false }: EndOptions = {},
  ): (isCertain: boolean) => void {
    const state = { began: this.tick(), ended: never, isCertain: false }
    const end: End = { words, fits, ...state, isPossible, takesSessions, lasts }
    this.#ends.push(end)
    return (isCertain) => {
      const wasPossible = isPossible()
      end.isPossible = () => wasPossible
      end.ended = this.tick()
      end.isCertain = isCertain
    }
  }

  /** Whether something may have ended a holding, or lets it not count at a call of this beginning. */
  mayBeOver(holding: Holding, moment = this.#moment): boolean {
    const { createdAt } = holding.session
    if (this.filesSince(moment).some((files) => !allows(files, holding.session, holding.clientId))) return true
    const isOld = this.#world.now > createdAt + sessionLife.idle * 1000 - tolerance
    // Where the clients file let the client have no offline access, it ends with its session.
    const isNarrow = this.filesSince(holding.began).some(({ narrow }) => narrow === holding.clientId)
    const isOffline = holding.isOffline && !isNarrow
    if (isOld && !isOffline) return true
    const fits = (end: End): boolean => end.fits(holding) || (!isOffline && end.fits({ ...holding, isOffline }))
    return this.#ends.some((end) => end.ended >= holding.began && fits(end) && end.isPossible())
  }

  /**
   * Notes that a session asks for something for an application. If the session ends before that is answered, all that
   * the application has of it may end, offline access included. What the user has allowed already, on another page or in
   * another session, it gets without a question: that is then allowed in this session, too. The returned function says
   * that the call has ended.
   */
  asks(session: Holding | undefined, clientId: string, asked: readonly string[] = []): () => void {
    if (session === undefined) return () => {}
    const began = this.tick()
    const { id, userId } = session.session
    const fits = (each: Holding): boolean => each.session.id === id && each.clientId === clientId
    const done = this.end('a request too late', fits, { isPossible: () => this.mayBeOver(session, began) })
    const goOn = (): void => {
      const allowed = this.allowed(userId, clientId, this.#moment)
      if (asked.every((each) => allowed.has(each))) this.consent(session.session, clientId, asked)()
    }
    goOn()
    return () => {
      done(false)
      goOn()
    }
  }

  /** Why a holding must not count at a call of this beginning; `undefined` if it may. */
  overBefore(holding: Holding, moment: number, at: number): string | undefined {
    return this.endedBefore(holding, moment, at) ?? this.notListed(holding, moment)
  }

  /** What had ended a holding for certain before a moment; `undefined` if nothing had. */
  endedBefore(holding: Holding, moment: number, at: number): string | undefined {
    const { expiresAt, createdAt } = holding.session
    if (!holding.isOffline && at > Math.max(expiresAt, createdAt + sessionLife.most * 1000) + tolerance) {
      return 'its session has expired'
    }
    return this.#ends.find((end) => {
      const isAfter = end.began > (end.takesSessions ? holding.since : holding.given)
      return end.isCertain && end.ended < moment && (isAfter || end.lasts()) && end.fits(holding)
    })?.words
  }

  /** Notes that a user allows something. The returned function says that the call has ended. */
  consent(session: Session, clientId: string, scopes: readonly string[]): () => void {
    const consent = { session, clientId, scopes, began: this.tick(), ended: never, over: never }
    this.#consents.push(consent)
    return () => {
      consent.ended = this.tick()
    }
  }

  /** Notes that what a user had allowed before a moment is taken back. */
  takeBackConsents(fits: (consent: Pick<Consent, 'session' | 'clientId'>) => boolean, before: number): void {
    for (const each of this.#consents) {
      if (fits(each) && each.ended < before) each.over = Math.min(each.over, this.tick())
    }
  }

  /** Notes that a copy of a moment was restored: what users had allowed by then is allowed, and nothing else. */
  restored(moment: number): void {
    for (const each of this.#consents) {
      if (each.began > moment) each.over = Math.min(each.over, this.tick())
      else if (each.over > moment) each.over = never
    }
  }

  /** All that a user had allowed an application at a moment. */
  allowed(userId: string, clientId: string, moment: number): ReadonlySet<string> {
    const its = this.#consents.filter(
      (each) => each.session.userId === userId && each.clientId === clientId && each.over > moment,
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
    const wasHeld = !this.mayBeOver(holding, use.began)
    const firstAt = Math.min(...uses.map(({ beganAt }) => beganAt))
    // Within the grace time, a second use ends nothing.
    const isLateOrSo = (): boolean => this.#world.now >= firstAt + graceMs - 2 * maxOffsetMs
    const fits = (each: Holding): boolean => each.session.id === session.id && each.clientId === clientId
    const end = isRepeated ? this.end('a second use', fits, { isPossible: isLateOrSo }) : undefined
    const { began } = use
    const done = (answer: Answer | undefined): void => {
      const { now } = this.#world
      this.#note(secret, answer)
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
      end?.(
        isInvalid &&
          isLate &&
          wasHeld &&
          this.notListed(holding, use.began) === undefined &&
          kind !== 'device code' &&
          !mayHaveExpired,
      )
      if (!isInvalid) return
      const mayBeUsed = uses.length > 1 && isLateOrSo()
      const isExplained = mayBeUsed || mayHaveExpired || this.mayBeOver(holding, use.began)
      this.require(
        isExplained,
        `${words}: a ${kind} is refused that has not been used: ${answer.json.error_description}`,
      )
    }
    return { began, done }
  }

  /** Counts what a secret is at an answer: what it is, what its session is and has come to, and how often it was used. */
  #note({ kind, holding, uses, graceMs }: Secret, answer: Answer | undefined): void {
    const { session, isOffline, clientId } = holding
    const granted = uses.filter((each) => each.granted).length
    const ends = this.#ends.filter((end) => end.ended >= holding.began && end.fits(holding)).map(({ words }) => words)
    const result = answer === undefined ? 'lost' : (answer.json.error ?? answer.status)
    const state = [kind, clientId, isOffline, session.orderId !== undefined, graceMs, granted, result]
    this.states.add([...state, ...new Set(ends)].join('|'))
  }
}
