import { type Countersign, createCountersign } from 'countersign'

let started: Promise<Countersign> | undefined

async function serve({ request }: { request: Request }): Promise<Response> {
  started ??= createCountersign({ publicUrl: process.env.APP_URL ?? 'http://localhost:3000' })
  return (await started).fetch(request)
}

export { serve as action, serve as loader }
