import { isReturnPath } from '../../shared/return-path.ts'

/**
 * The address to which a sign-in page leads after the sign-in: its parameter `returnTo` if that is a path that stays on
 * the page's origin and is not the page's own, else the root.
 */
export function returnTarget(page: URL): URL {
  const root = new URL('/', page)
  const returnTo = page.searchParams.get('returnTo')
  if (returnTo === null || !isReturnPath(returnTo)) return root
  const target = new URL(returnTo, page)
  return target.origin === page.origin && target.pathname !== page.pathname ? target : root
}
