import { createDirectClient } from 'countersign/client/direct'

/** The client of the service. There is one for the whole application, made outside of its components. */
export const client = createDirectClient({ baseUrl: 'http://localhost:8080' })
