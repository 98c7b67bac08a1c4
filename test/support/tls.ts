import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll } from 'vitest'
import { Authority, type Certificate } from './certificates.ts'

/** An authority that all clients of this process trust, for certificates of localhost. Needs openssl. */
export interface TrustedAuthority {
  /** The folder that all files are in. */
  readonly folder: string
  /** File of the authority's own certificate. */
  readonly cert: string
  /** With -1 days, the certificate expired a day ago. */
  issue(host: string, days?: number): Promise<Certificate>
}

/** Makes an authority for the tests of this file. */
export async function trustedAuthority(): Promise<TrustedAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-tls-'))
  const authority = await Authority.create(folder, 'authority')
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, await readFile(authority.cert, 'utf8')])
  afterAll(async () => {
    setDefaultCACertificates(before)
    await rm(folder, { recursive: true })
  })
  return { folder, cert: authority.cert, issue: (host, days) => authority.issue(host, days) }
}

/** Puts the content of one file in the place of another, in one step. */
export async function replaceFile(file: string, by: string): Promise<void> {
  await writeFile(`${file}.new`, await readFile(by))
  await rename(`${file}.new`, file)
}
