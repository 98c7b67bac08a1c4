import type { RequestContext } from '../../../src/base/request.ts'
import type { Session } from '../../../src/core/users/host.ts'
import { OwnSessions } from '../../../src/core/users/own-sessions.ts'
import { reaches } from '../../../src/shared/session.ts'
import type { Random } from '../random.ts'
import { ownOrigin, request } from '../service.ts'
import type { Browser, KnownSession } from './browser.ts'
import type { Holding } from './facts.ts'
import { Party } from './party.ts'
import type { Running } from './service.ts'

/** A person at the account page, or at a phone: signs out, takes sessions back, disconnects applications. */
export class Person extends Party {
  protected begin(random: Random): unknown {
    // People do so seldom.
    if (!random.permille(120)) return
    const browser = random.pick(this.scene.browsers)
    const { current } = browser
    if (current === undefined) return
    const choice = random.below(100)
    if (choice < 20) return this.#signOut(random, browser, current)
    if (choice < 35) return this.#revokeOthers(random, current)
    if (choice < 55) return this.#revoke(random, current)
    if (choice < 65) return this.#takeBack(random, current)
    if (choice < 90) return this.#disconnect(random, current)
    return this.#list(random, current)
  }

  #signOut(random: Random, browser: Browser, known: KnownSession): void {
    const { id } = known.session
    const words = 'signs out'
    const fits = (each: Holding): boolean => each.session.id === id && !each.isOffline
    const end = this.scene.facts.end('its user has signed out', fits, { takesSessions: true })
    this.do(
      random,
      words,
      ({ domain }) => domain.host.signOut(request(ownOrigin, known.token)),
      ({ kind }) => {
        end(kind === 'answered')
        if (kind === 'answered' && browser.current === known) browser.current = undefined
      },
    )
  }

  #revokeOthers(random: Random, known: KnownSession): void {
    const fits = ({ session }: Holding): boolean => isOther(known.session, session) && reaches(known.session, session)
    const end = this.scene.facts.end('its user has ended all other sessions', fits, { takesSessions: true })
    this.do(
      random,
      'ends all other sessions',
      (running) => withOwn(running, known, (sessions, own, from) => sessions.revokeOthers(own, from)),
      ({ kind }) => end(kind === 'answered'),
    )
  }

  #revoke(random: Random, known: KnownSession): void {
    const { facts, browsers } = this.scene
    const others = browsers.flatMap(({ sessions }) => sessions.filter((each) => isOther(known.session, each.session)))
    if (others.length === 0) return
    const { session } = random.pick(others.slice(-6))
    const isReached = reaches(known.session, session)
    const fits = (each: Holding): boolean => isReached && each.session.id === session.id
    const end = facts.end('its user has ended the session', fits, { takesSessions: true })
    this.do(
      random,
      'ends another session',
      (running) => withOwn(running, known, (sessions, own, from) => sessions.revoke(own, session.id, from)),
      (outcome) => {
        const isDone = outcome.kind === 'answered'
        facts.require(isReached || !isDone, 'a session that an order made ends one of a direct sign-in')
        // What outlives a sign-out is ended also once the session is over.
        end(isDone || (outcome.kind === 'refused' && outcome.reason === 'SESSION_NOT_FOUND'))
      },
    )
  }

  #takeBack(random: Random, { session, phone }: KnownSession): void {
    if (phone === undefined) return
    const fits = (each: Holding): boolean => each.session.id === session.id
    const end = this.scene.facts.end('its order is taken back', fits, { takesSessions: true })
    this.do(
      random,
      'takes a sign-in back',
      ({ domain }) => domain.orders.reject(phone, request(ownOrigin)),
      ({ kind }) => end(kind === 'answered'),
    )
  }

  #disconnect(random: Random, { session }: KnownSession): void {
    const { facts, applications } = this.scene
    const { clientId } = random.pick(applications)
    const fits = (each: Pick<Holding, 'session' | 'clientId'>): boolean => {
      return each.session.userId === session.userId && each.clientId === clientId && reaches(session, each.session)
    }
    const end = facts.end('its user has disconnected the application', fits)
    const began = facts.tick()
    this.do(
      random,
      `disconnects ${clientId}`,
      ({ issuer }) => issuer.disconnectApp(session, clientId, request(ownOrigin)),
      ({ kind }) => {
        end(kind === 'answered')
        if (kind === 'answered') facts.takeBackConsents(fits, began)
      },
    )
  }

  /** The applications that it sees are those that it has connected. */
  #list(random: Random, { session }: KnownSession): void {
    const { facts, applications } = this.scene
    let began = 0
    this.do(
      random,
      'lists applications',
      ({ issuer }) => {
        began = facts.tick()
        return issuer.listApps(session.userId)
      },
      (outcome) => {
        if (outcome.kind !== 'answered') return
        for (const { clientId, connections } of applications) {
          const isListed = outcome.value.some((each) => each.clientId === clientId)
          const isConnected = connections.some(({ holding }) => {
            return (
              holding.session.userId === session.userId && holding.given < began && !facts.mayBeOver(holding, began)
            )
          })
          facts.require(isListed || !isConnected, `${clientId} has tokens, and is not listed`)
        }
        for (const { clientId, scopes } of outcome.value) {
          const application = applications.find((each) => each.clientId === clientId)
          const allowed = new Set([...facts.allowed(session.userId, clientId, began)].map((each) => each.split(' ')[0]))
          const isGiven = application?.kind.isFirstParty || scopes.every((each) => allowed.has(each))
          facts.require(isGiven, `${clientId} is listed with ${scopes.join(' ')}, which its user has not allowed`)
        }
      },
    )
  }
}

/** Whether a session is another one of the same user. */
function isOther(own: Session, other: Session): boolean {
  return own.userId === other.userId && own.id !== other.id
}

/** What a user does with sessions from one of them, if that lives. */
async function withOwn<Value>(
  { domain, sessionEnds }: Running,
  { token }: KnownSession,
  run: (sessions: OwnSessions, own: Session, from: RequestContext) => Promise<Value>,
): Promise<Value> {
  const { host, computers } = domain
  const from = request(ownOrigin, token)
  const { session } = await host.currentSession(from)
  return await run(new OwnSessions(host, { computers, sessionEnds }), session, from)
}
