import { type Countersign, createCountersign } from 'countersign'

export const appUrl = process.env.APP_URL ?? 'http://localhost:3000'

// Kept there, because the development server reloads files.
const kept = globalThis as { countersign?: Promise<Countersign> }

/** The service. It is made at the first request, because `next build` loads every route. */
export function countersign(): Promise<Countersign> {
  kept.countersign ??= createCountersign({ appName: 'Tulip Shop', publicUrl: appUrl })
  return kept.countersign
}

export async function serve(request: Request): Promise<Response> {
  return (await countersign()).fetch(request)
}
