import { createCountersign } from 'countersign'
import express from 'express'

const port = Number(process.env.PORT ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

const app = express()
app.use(countersign.handler)
app.use(express.json())
app.get('/', (_request, response) => void response.send('The application'))
app.post('/echo', (request, response) => void response.json(request.body))
app.listen(port, 'localhost')
