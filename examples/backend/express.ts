// An Express application that serves signed-in users only.
//   COUNTERSIGN_URL=http://localhost:8080 PORT=3000 node examples/backend/express.ts
import express from 'express'
import { requireSession } from '../../src/integrations/backend/express.ts'
import { createSessionVerifier } from '../../src/integrations/backend/index.ts'
import { sayWhere } from './listening.ts'

const { COUNTERSIGN_URL: url = 'http://localhost:8080', PORT: port = '3000' } = process.env
const app = express()
const verifier = createSessionVerifier({ url })

app.all('/me', requireSession(verifier), (_request, response) => {
  const { userId, address } = response.locals.session
  response.json({ userId, address })
})

const server = app.listen(Number(port), 'localhost', () => sayWhere(server.address()))
