// Sends users a message of each request, sign-in and change of wallets: docs/pages.md. Each way of sending takes an agent's
// title as text and nothing else.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { accountMessage } from './account.ts'
import { mail } from './mail.ts'
import { ntfy } from './ntfy.ts'
import { slack } from './slack.ts'

const ways: Record<string, (address: string, about: string, what: string, url: string) => Promise<void>> = {
  mail,
  ntfy,
  slack,
}
const webhook = new Webhook(process.env.COUNTERSIGN_WEBHOOK_SECRET ?? '')
const sent = new DatabaseSync('sent.db')
sent.exec('CREATE TABLE IF NOT EXISTS sent (id TEXT, way TEXT, PRIMARY KEY (id, way)) STRICT')

/** What a message is about, what it says, and where it leads. */
function messageOf(event): [string, string, string] | undefined {
  const { type, data } = event
  if (type === 'order.addressed')
    return ['Approval needed', data.title ?? 'A request without a title', data.approvalUrl]
  return accountMessage(event)
}

/** Sends what has not been sent: an event comes again if one of its ways failed, or if the answer was late. */
async function send(id: string, event): Promise<void> {
  const message = messageOf(event)
  if (message === undefined) return
  const people = JSON.parse(await readFile('people.json', 'utf8'))
  for (const [way, address] of Object.entries<string>(people[event.data.userId] ?? {})) {
    if (sent.prepare('SELECT 1 FROM sent WHERE id = ? AND way = ?').get(id, way)) continue
    await ways[way](address, ...message)
    sent.prepare('INSERT INTO sent VALUES (?, ?)').run(id, way)
  }
}

let last = Promise.resolve()
createServer(async (request, response) => {
  const headers = request.headers as Record<string, string>
  const body = await text(request)
  try {
    webhook.verify(body, headers)
  } catch {
    return response.writeHead(401).end()
  }
  // One after the other: an event that comes twice at once is sent once.
  last = last
    .then(() => send(headers['webhook-id'], JSON.parse(body)))
    .then(
      () => void response.end(),
      (error) => void response.writeHead(503).end(console.error(error)),
    )
}).listen(Number(process.env.PORT ?? 9000), 'localhost')
