/** Most documents that are fetched at once: in all, and from one host. */
const [mostAtOnce, mostOfHost] = [5, 2]

/**
 * Most for a network and for the wider ones around it, narrowest first. An IPv6 /48 has more networks than there are
 * places.
 */
const mostOfNetworks: readonly number[] = [1, 2, 2]

/** Most requests that wait for a place, and the longest time in ms that one waits. */
const [mostWaiting, waitMs] = [20, 2_500]

/** Most entries of a map that strangers fill. */
const mostRemembered = 1_000

/** A document cannot be had now. */
export class DocumentUnavailable extends Error {}

/** A document that a request needs. */
export interface WantedDocument {
  /** Its address. */
  readonly id: string
  /** The networks that the request counts for, narrowest first. None if its network is unknown, which has no bound. */
  readonly networks: readonly string[]
}

interface Waiting<Document> extends WantedDocument {
  /** Ends the wait. */
  readonly end: (document: Promise<Document>) => void
}

/**
 * Fetches of documents that are under way, and the requests that wait for a place. A network has a share of both, so
 * that the slow documents of one do not hold up others.
 */
export class DocumentFetches<Document> {
  readonly #fetch: (id: string) => Promise<Document>
  readonly #underWay = new Map<string, WantedDocument & { readonly document: Promise<Document> }>()
  #waiting: readonly Waiting<Document>[] = []
  /** Number of the last fetch of a network. */
  readonly #lastOf = new Map<string, number>()
  #count = 0

  /** @param fetch resolves with a document, or rejects, within a bounded time. */
  constructor(fetch: (id: string) => Promise<Document>) {
    this.#fetch = fetch
  }

  /** Whether a document is being fetched: another request for it causes none. */
  has(id: string): boolean {
    return this.#underWay.has(id)
  }

  /**
   * Fetches a document once there is a place. Rejects with {@link DocumentUnavailable} if none is free in time, or as
   * the fetch does.
   */
  async get(wanted: WantedDocument): Promise<Document> {
    const underWay = this.#underWay.get(wanted.id)
    if (underWay !== undefined) return await underWay.document
    return await (this.#hasPlaceFor(wanted) ? this.#begin(wanted) : this.#wait(wanted))
  }

  #hasPlaceFor({ id, networks }: WantedDocument): boolean {
    const all = [...this.#underWay.values()]
    const ofHost = all.filter((each) => hostOf(each.id) === hostOf(id)).length
    const hasRoom = (network: string, width: number): boolean =>
      all.filter((each) => each.networks.includes(network)).length < (mostOfNetworks[width] as number)
    return all.length < mostAtOnce && ofHost < mostOfHost && networks.every(hasRoom)
  }

  #begin(wanted: WantedDocument): Promise<Document> {
    const { id, networks } = wanted
    const [network] = networks
    if (network !== undefined) remember(this.#lastOf, network, ++this.#count)
    const document = this.#fetch(id).finally(() => {
      this.#underWay.delete(id)
      this.#beginNext()
    })
    this.#underWay.set(id, { ...wanted, document })
    for (const each of this.#waiting) if (each.id === id) each.end(document)
    return document
  }

  /** Gives free places to those who wait. The network whose last fetch is oldest goes first. */
  #beginNext(): void {
    const turnOf = ({ networks: [network = ''] }: WantedDocument): number => this.#lastOf.get(network) ?? 0
    for (;;) {
      const ready = this.#waiting.filter((each) => this.#hasPlaceFor(each))
      const [first] = ready.toSorted((a, b) => turnOf(a) - turnOf(b))
      if (first === undefined) return
      void this.#begin(first)
    }
  }

  async #wait(wanted: WantedDocument): Promise<Document> {
    if (this.#waiting.length >= mostWaiting) this.#makeRoomFor(wanted)
    const { promise, resolve } = Promise.withResolvers<Document>()
    const waiting: Waiting<Document> = {
      ...wanted,
      end: (document) => {
        clearTimeout(timer)
        this.#waiting = this.#waiting.filter((each) => each !== waiting)
        resolve(document)
      },
    }
    const timer = setTimeout(() => waiting.end(busy()), waitMs)
    this.#waiting = [...this.#waiting, waiting]
    return await promise
  }

  /** Turns away the last request of the site with the most, unless the new request's site would have as many. */
  #makeRoomFor(wanted: WantedDocument): void {
    const sites = Map.groupBy(this.#waiting, siteOf)
    const own = sites.get(siteOf(wanted))?.length ?? 0
    const [most = []] = [...sites.values()].toSorted((a, b) => b.length - a.length)
    if (most.length <= own + 1) throw new DocumentUnavailable(busyText)
    most.at(-1)?.end(busy())
  }
}

const busyText = 'other documents are being fetched'

async function busy(): Promise<never> {
  throw new DocumentUnavailable(busyText)
}

function hostOf(id: string): string {
  return new URL(id).host
}

/** The widest network of a request. */
function siteOf({ networks }: WantedDocument): string | undefined {
  return networks.at(-1)
}

/** Puts an entry behind all others, and drops the first if there are too many. */
export function remember<Value>(entries: Map<string, Value>, key: string, value: Value): void {
  entries.delete(key)
  entries.set(key, value)
  const [first] = entries.keys()
  if (entries.size > mostRemembered && first !== undefined) entries.delete(first)
}
