import type { RequestHandler } from '@sveltejs/kit'
import { type Countersign, createCountersign } from 'countersign'

let started: Promise<Countersign> | undefined

export const fallback: RequestHandler = async ({ request, getClientAddress }) => {
  started ??= createCountersign({ publicUrl: process.env.APP_URL ?? 'http://localhost:3000' })
  return (await started).fetch(request, { remoteAddress: getClientAddress() })
}
