export function GET(request: Request) {
  return Response.json({ userId: request.headers.get('x-user-id') })
}
