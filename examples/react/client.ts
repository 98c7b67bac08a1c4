import { createRestClient } from 'countersign/client/rest'

/** The client of the service. There is one for the whole application, made outside of its components. */
export const client = createRestClient({ baseUrl: 'http://localhost:8080' })
