import { createCountersignClient } from 'countersign/client'

/** The client of the service. There is one for the whole application, made outside of its components. */
export const client = createCountersignClient({ baseUrl: 'http://localhost:8080' })
