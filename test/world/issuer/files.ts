import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { People, type Person } from '../../../src/core/users/people.ts'
import type { PastSession } from '../../../src/core/users/sessions.ts'
import type { Random } from '../random.ts'
import type { Wallet } from '../wallets.ts'

/** The part of clients.json that is edited here. */
interface ClientsJson {
  readonly clients: readonly {
    readonly metadata: { readonly client_id: string }
    readonly groups?: readonly string[]
  }[]
  readonly resources: readonly { readonly clients: readonly string[] }[]
}

/** The people file and the clients file of a service, as an operator may have edited them. */
export interface Files {
  readonly people: People
  /** Whether only people of the file may sign in. */
  readonly admitsPeople: boolean
  /** Path of the clients file. */
  readonly clients: string
  /** Groups that each client of the file is for; `undefined`: all. */
  readonly groups: ReadonlyMap<string, readonly string[] | undefined>
  /** A client that may have the scope `openid` alone. */
  readonly narrow: string | undefined
}

const whole: ClientsJson = JSON.parse(readFileSync(fileURLToPath(new URL('clients.json', import.meta.url)), 'utf8'))

/** Whether a session counts and, with a client, whether that is for its user. */
export function allows(files: Files, session: PastSession, clientId?: string): boolean {
  const person = files.people.find(session)
  if (files.admitsPeople && person === undefined) return false
  if (clientId === undefined) return true
  const groups = files.groups.get(clientId)
  return files.groups.has(clientId) && (groups?.some((each) => person?.groups?.includes(each)) ?? true)
}

/** Files with everyone in them, of whom the first two are staff, and all clients. */
export function wholeFiles(wallets: readonly Wallet[], admitsPeople: boolean): Files {
  const people = wallets.map(({ listedAs }, index) => [listedAs, index < 2 ? { groups: ['staff'] } : {}] as const)
  return filesOf(people, whole, { admitsPeople, narrow: undefined })
}

/** Files that lack some people, groups and clients. */
export function editedFiles(wallets: readonly Wallet[], admitsPeople: boolean, random: Random): Files {
  const listed = wallets.filter(() => random.permille(600))
  const people = listed.map(({ listedAs }) => [listedAs, random.permille(600) ? { groups: ['staff'] } : {}] as const)
  const some = (): string | undefined => {
    return random.permille(400) ? random.pick(whole.clients).metadata.client_id : undefined
  }
  const [without, narrow, grouped] = [some(), some(), some()]
  const clients = whole.clients.flatMap((client) => {
    const { client_id: id } = client.metadata
    if (id === without) return []
    const metadata = id === narrow ? { ...client.metadata, scope: 'openid' } : client.metadata
    return [{ ...client, metadata, ...(id === grouped ? { groups: ['staff'] } : {}) }]
  })
  // A resource names clients of the file alone.
  const resources = whole.resources.filter((each) => !each.clients.includes(without ?? ''))
  return filesOf(people, { clients, resources }, { admitsPeople, narrow })
}

function filesOf(
  people: readonly (readonly [string, Person])[],
  json: ClientsJson,
  others: Pick<Files, 'admitsPeople' | 'narrow'>,
): Files {
  return {
    ...others,
    people: new People({ byWallet: new Map(people) }),
    clients: pathOf(JSON.stringify(json)),
    groups: new Map(json.clients.map(({ metadata, groups }) => [metadata.client_id, groups])),
  }
}

let folder: string | undefined

/** Path of a file with this text, for as long as the process runs. */
function pathOf(text: string): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'countersign-world-clients-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  const path = join(folder, `${hash('sha256', text)}.json`)
  writeFileSync(path, text)
  return path
}
