// Tells failures apart by their code; see docs/errors.md.
// In a project of your own, import from 'countersign/client'.
import { CountersignClientError, createCountersignClient } from '../../src/browser/client/index.ts'

const client = createCountersignClient({ baseUrl: 'http://localhost:8080' })
try {
  await client.claimOrder({ orderId: 'unknown', claimToken: 'csc_unknown' })
} catch (error) {
  if (!(error instanceof CountersignClientError)) throw error
  switch (error.code) {
    case 'ORDER_NOT_FOUND':
    case 'ORDER_EXPIRED':
      console.log('The code is too old: show a new one')
      break
    case 'ORDER_ALREADY_CLAIMED':
      console.log('Another phone was faster')
      break
    case 'NETWORK':
      console.log('No answer: try again')
      break
    default:
      console.log(`${error.code}: ${error.message}`)
  }
}
