import { Random } from '../random.ts'
import type { Ran, Run } from '../run.ts'
import { Wallet } from '../wallets.ts'
import { type Faults, noFaults, Violation, World } from '../world.ts'
import { Application, type ApplicationKind, Window } from './application.ts'
import { Browser, Tab } from './browser.ts'
import { Facts } from './facts.ts'
import { wholeFiles } from './files.ts'
import { Operator } from './operator.ts'
import type { Party, Scene } from './party.ts'
import { Person } from './person.ts'
import { Service, storeWithKeys } from './service.ts'
import { Terminal, TerminalUser } from './terminal.ts'
import { Thief } from './thief.ts'

/** Steps of a world, unless another number is asked for. */
export const stepsOfIssuerWorld = 1500

const wallets = [1, 2, 3].map((number) => new Wallet(number))

const all = ['openid', 'profile', 'wallet', 'offline_access', 'groups']
const orders = { address: 'https://orders.example', scopes: ['orders:read', 'orders:write'] }
const stock = { address: 'https://stock.example', scopes: ['stock:read'] }
const plain = { scopes: all, graceMs: 0, rotates: true, asksEachTime: false, isFirstParty: false, isForStaff: false }

const kinds: readonly ApplicationKind[] = [
  {
    ...plain,
    clientId: 'shop',
    secret: 'a-secret-of-the-shop-long-enough',
    redirectUri: 'https://shop.example/callback',
    resource: orders,
  },
  { ...plain, clientId: 'editor', redirectUri: 'https://editor.example/callback', resource: orders, graceMs: 10_000 },
  { ...plain, clientId: 'notes', redirectUri: 'com.example.notes:/callback', graceMs: 30_000, asksEachTime: true },
  {
    ...plain,
    clientId: 'intranet',
    secret: 'a-secret-of-the-intranet-long-enough',
    redirectUri: 'https://intranet.example/callback',
    resource: stock,
    isFirstParty: true,
    isForStaff: true,
  },
  {
    ...plain,
    clientId: 'mail',
    secret: 'a-secret-of-the-mail-long-enough-',
    redirectUri: 'https://mail.example/callback',
    scopes: ['openid', 'offline_access'],
    rotates: false,
  },
]

const terminal: ApplicationKind = { ...plain, clientId: 'terminal', graceMs: 10_000, asksEachTime: true }

function faultsOf(random: Random): Faults {
  const some = (share: number): number => (random.permille(500) ? share : 0)
  return {
    ...noFaults,
    lostBefore: some(15),
    lostAfter: some(15),
    lateAnswer: some(400),
    crash: some(4),
    clockJump: some(10),
    leap: some(4),
    slow: some(60),
  }
}

/** Runs a world with an issuer. */
export async function runIssuerWorld(run: Run, numbers: readonly number[]): Promise<Ran> {
  const random = new Random(run.seed ^ 0x15500e4)
  const world = new World(run.seed, faultsOf(random), () => {})
  world.idle = new Set(run.idle)
  const facts = new Facts(world)
  const played = await world.play(numbers, async (steps) => {
    world.store.restore(await storeWithKeys(wholeFiles(wallets, false)))
    const parties = peopled(world, facts, random)
    await steps()
    if (run.liveness) await comeToAnEnd(world, parties)
  })
  return { ...played, orders: facts.given, states: facts.states }
}

function peopled(world: World, facts: Facts, random: Random): readonly Party[] {
  const files = wholeFiles(wallets, random.permille(400))
  const service = new Service(world, 2, files)
  service.onReload = () => facts.inForce(service.oldestEdit)
  facts.edited(files)
  const used = kinds.filter(() => random.permille(600))
  const applications = (used.length === 0 ? kinds.slice(0, 1) : used).map((kind) => new Application(kind, () => scene))
  const scene: Scene = { world, service, facts, wallets, browsers: [], applications, terminals: [], count: 0 }
  const parties: Party[] = []
  for (const number of [1, 2]) {
    if (number > 1 && !random.permille(400)) continue
    const browser = new Browser(`browser ${number}`, random.pick(wallets))
    scene.browsers.push(browser)
    parties.push(new Tab(`tab 1 of ${browser.name}`, scene, browser))
    if (random.permille(600)) parties.push(new Tab(`tab 2 of ${browser.name}`, scene, browser))
  }
  for (const application of applications) {
    parties.push(new Window(application.clientId, scene, application))
    if (random.permille(500)) parties.push(new Window(`${application.clientId} 2`, scene, application))
  }
  if (random.permille(350)) {
    const application = new Application(terminal, () => scene)
    const device = new Terminal('the terminal', scene, application)
    const browser = scene.browsers[0] as Browser
    scene.terminals.push(device)
    parties.push(device, new TerminalUser('its user', scene, { browser, terminal: device }))
    parties.push(new Window('the program of the terminal', scene, application))
  }
  if (random.permille(300)) parties.push(new Thief('the thief', scene))
  parties.push(new Person('the person', scene))
  if (random.permille(500)) parties.push(new Operator('the operator', scene))
  return parties
}

/** Faults have stopped: what was begun comes to its end. */
async function comeToAnEnd(world: World, parties: readonly Party[]): Promise<void> {
  const random = new Random(1)
  for (let rounds = 0; ; rounds++) {
    if (rounds > 60) throw new Violation('what was begun does not come to its end')
    for (const process of parties[0]?.scene.service.processes ?? []) process.act()
    await world.drain()
    if (parties.filter((party) => party.finish(random)).length === 0) break
    await world.drain()
  }
  await endLives(world, parties, random)
}

/** What begun requests, sessions and applications leave is gone once its life is over. */
async function endLives(world: World, parties: readonly Party[], random: Random): Promise<void> {
  const { store } = world
  const minuteMs = 60_000
  const require = (holds: boolean, words: string): void => {
    if (!holds) throw new Violation(words)
  }
  const found = (pattern: RegExp) => [...store.found('')].filter(({ key }) => pattern.test(key))
  const begun = /^oidc:(Interaction|PushedAuthorizationRequest|AuthorizationCode|DeviceCode|DeviceUserCode):/
  // A process that starts works through the ends of sessions.
  world.crashAll(random)
  for (const process of parties[0]?.scene.service.processes ?? []) process.act()
  await world.drain()
  for (const member of store.membersOf('ended-sessions')) {
    const [id, , , connection] = JSON.parse(member)
    const lives = connection ? found(/^app:/).some(({ value }) => value.includes(`"${connection}"`)) : undefined
    require(lives ?? store.read(`session:${id}`)?.includes('"tokenHash"') === true, 'the end of a session stays noted')
  }
  await world.pass(22 * minuteMs)
  require(found(begun).length === 0, `a request or code outlives its time: ${found(begun)[0]?.key}`)
  await world.pass(60 * minuteMs)
  for (const { key, value } of found(/^app:/)) {
    const [, user, name] = key.split(':')
    require(value.includes('"connection"'), 'the record of an application without a connection is kept')
    require(store.read(`apps-of:${user}`)?.includes(`"${name}"`) === true, 'an application is in no list of its user')
  }
  await world.pass(91 * 24 * 60 * minuteMs)
  const left = found(/^(?!user:|wallet:|app:|apps-of:|oidc:signing-keys:)/)
  require(left.length === 0, `${left[0]?.key} outlives everything`)
  require(store.membersOf('ended-sessions').length === 0, 'the end of a session is noted for ever')
}
