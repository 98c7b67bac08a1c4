// Serves the users of access tokens: docs/access-tokens.md.
import { createServer } from 'node:http'
import { AccessTokenError, verifyAccessToken } from 'countersign/backend'

const rules = { issuer: 'https://auth.example', audience: 'https://orders.example' }

createServer(async (request, response) => {
  const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
  try {
    const { userId, wallet } = await verifyAccessToken(token, rules)
    response.end(`User ${userId} with the wallet ${wallet.address}\n`)
  } catch (error) {
    const isRefused = error instanceof AccessTokenError && error.reason !== 'KEYS_UNAVAILABLE'
    response.writeHead(isRefused ? 401 : 503).end()
  }
}).listen(3000)
