// countersign/backend needs nothing of Node.js, so this runs on the edge runtime as well.
// Next.js 16 runs this before its routes. It verifies access tokens without a call for each request. Before Next.js 16,
// the file is middleware.ts and the function `middleware` (not run).
import { AccessTokenError, verifyAccessToken } from 'countersign/backend'
import { type NextRequest, NextResponse } from 'next/server'

export const config = { matcher: '/orders/:path*' }
const rules = { issuer: process.env.AUTH_URL ?? 'https://auth.shop.example', audience: 'https://orders.example' }

export async function proxy(request: NextRequest) {
  const token = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
  try {
    const { userId } = await verifyAccessToken(token, rules)
    const headers = new Headers(request.headers)
    headers.set('x-user-id', userId)
    return NextResponse.next({ request: { headers } })
  } catch (error) {
    const isRefused = error instanceof AccessTokenError && error.reason !== 'KEYS_UNAVAILABLE'
    return new NextResponse(null, { status: isRefused ? 401 : 503 })
  }
}
