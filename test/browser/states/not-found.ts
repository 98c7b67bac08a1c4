import type { States } from './order-states.ts'

export const notFoundStates: States = {
  async 'unknown path'({ serve, open }) {
    const [url, page] = [await serve(), await open()]
    await page.goto(`${url}/nothing`)
    await page.locator('#not-found').waitFor()
    return page
  },
}
