import { expect, test } from 'vitest'
import { startInternet } from '../support/internet.ts'
import vectors from '../vectors/client-documents.json' with { type: 'json' }
import { authorizeAddress, json, startWithDocuments } from './documents.ts'
import { Browser, contentOf } from './support.ts'

const internet = await startInternet()

test.each(vectors.documents)('$document.client_name signs in as it is published', async ({ document, used }) => {
  const { client_id: id, client_name: name } = document
  const { host } = new URL(id)
  internet.put(host, (request, response) => {
    json(() => (new URL(id).pathname === request.url ? document : { keys: [] }))(request, response)
  })
  const { url } = await startWithDocuments()
  const browser = await Browser.signedIn(url)
  const { text } = await browser.open(authorizeAddress(url, id, used))
  const shown = contentOf(text)
  expect(shown).toMatchObject({ kind: 'consent', client: { name }, documentHost: host })
  expect(shown.host).toBe(used.startsWith('https:') ? new URL(used).host : undefined)
})
