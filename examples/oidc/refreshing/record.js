// Shows the request and the answer of the last refresh in the title of the page.
const send = window.fetch
window.fetch = async (...call) => {
  const request = new Request(...call)
  const form = new URLSearchParams(request.method === 'POST' ? await request.clone().text() : '')
  const answer = await send(request)
  if (form.get('grant_type') !== 'refresh_token') return answer
  const { error, scope } = await answer.clone().json()
  document.title = JSON.stringify({ asked: form.get('scope'), status: answer.status, error, scope })
  return answer
}
