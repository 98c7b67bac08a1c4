// Takes the events of the webhook: docs/audit.md.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.COUNTERSIGN_WEBHOOK_SECRET ?? '')
const seen = new Set() // keep the ids of three days in your database

createServer(async (request, response) => {
  try {
    const event = webhook.verify(await text(request), request.headers as Record<string, string>)
    const id = request.headers['webhook-id']
    if (!seen.has(id)) console.log(JSON.stringify(event))
    seen.add(id)
    response.end()
  } catch {
    response.writeHead(401).end()
  }
}).listen(Number(process.env.PORT ?? 9000), 'localhost')
