// Waits for as long as the service asks, over REST without a client; see docs/errors.md.
/** Makes a call whose retry gets the same answer, and makes it again for as long as the service asks to wait. */
async function call(path: string, body: object, tries = 5): Promise<unknown> {
  const response = await fetch(`http://localhost:8080/api/auth${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = await response.json()
  if (response.ok) return answer
  const seconds = Number(response.headers.get('retry-after'))
  if (seconds === 0 || tries === 1) throw new Error(`${answer.code}: ${answer.message}`)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  return await call(path, body, tries - 1)
}

const challenge = await call('/wallet/nonce', {})
console.log(challenge)
