import { createCountersign } from 'countersign'

const port = Number(Deno.env.get('PORT') ?? 3000)
const countersign = await createCountersign({ publicUrl: `http://localhost:${port}` })

Deno.serve({ port, hostname: 'localhost' }, (request, { remoteAddr }) => {
  if (new URL(request.url).pathname === '/') return new Response('The application')
  return countersign.fetch(request, { remoteAddress: remoteAddr.hostname })
})
