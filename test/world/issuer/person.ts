import { OwnSessions } from '../../../src/core/users/own-sessions.ts'
import type { Random } from '../random.ts'
import { ownOrigin, request } from '../service.ts'
import type { Browser, KnownSession } from './browser.ts'
import { Party } from './party.ts'

/** A person at the account page: signs out, takes sessions back, disconnects applications. */
export class Person extends Party {
  protected begin(random: Random): unknown {
    // People do so seldom.
    if (!random.permille(120)) return
    const browser = random.pick(this.scene.browsers)
    const { current } = browser
    if (current === undefined) return
    const choice = random.below(100)
    if (choice < 25) return this.#signOut(random, browser, current)
    if (choice < 50) return this.#revokeOthers(random, current)
    if (choice < 85) return this.#disconnect(random, current)
    return this.#list(random, current)
  }

  #signOut(random: Random, browser: Browser, known: KnownSession): void {
    const { id } = known.session
    const words = 'signs out'
    const end = this.scene.facts.end('its user has signed out', (each) => each.session.id === id && !each.isOffline)
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
    const { id, userId } = known.session
    const end = this.scene.facts.end('its user has ended all other sessions', (each) => {
      return each.session.userId === userId && each.session.id !== id
    })
    this.do(
      random,
      'ends all other sessions',
      (running) => {
        const { host, computers } = running.domain
        const own = new OwnSessions(host, { computers, sessionEnds: running.sessionEnds })
        return own.revokeOthers(known.session, request(ownOrigin, known.token))
      },
      ({ kind }) => end(kind === 'answered'),
    )
  }

  #disconnect(random: Random, { session }: KnownSession): void {
    const { facts, applications } = this.scene
    const { clientId } = random.pick(applications)
    const { userId } = session
    const end = facts.end('its user has disconnected the application', (each) => {
      return each.session.userId === userId && each.clientId === clientId
    })
    const began = facts.tick()
    this.do(
      random,
      `disconnects ${clientId}`,
      ({ issuer }) => issuer.disconnectApp(session, clientId, request(ownOrigin)),
      ({ kind }) => {
        end(kind === 'answered')
        if (kind === 'answered') facts.takeBackConsents(userId, clientId, began)
      },
    )
  }

  /** Each application that it sees is one that it has connected. */
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
