import { sessionCookieName } from '../shared/header-text.ts'
import { letAnyPageRead } from './cors.ts'
import type { Route } from './exchange.ts'
import { compressible, entityTag, type ServedFile } from './page-files.ts'
import { fileRoute } from './pages.ts'
import type { RestPaths } from './rest/endpoints.ts'

/** The paths of gen/openapi.json: the default ones. scripts/openapi.ts writes it. */
export const templatePaths: RestPaths = {
  basePath: '/api/auth',
  endpointPrefix: '/wallet',
}

/** The settings in the document. */
export interface OpenApiSettings extends RestPaths {
  readonly publicUrl: string | undefined
}

/** Path of the document, under the base path and, but for a service that is mounted, under the root. */
export const documentPath = '/openapi.json'

/** Time in seconds for which the document may be cached without asking again. */
const maxAgeSeconds = 300

/** The route of the OpenAPI document of the REST calls, which is made at the first request for it. */
export function openApiRoute(settings: OpenApiSettings): Route {
  let file: Promise<ServedFile> | undefined
  const serve = fileRoute(() => {
    file ??= documentFile(settings)
    return file
  })
  return (exchange) => {
    // It says what is public in the package, and where the calls are.
    letAnyPageRead(exchange)
    return serve(exchange)
  }
}

async function documentFile(settings: OpenApiSettings): Promise<ServedFile> {
  const headers = { 'content-type': 'application/json', 'cache-control': `public, max-age=${maxAgeSeconds}` }
  return compressible(await documentText(settings), (body, encoding) => ({
    status: 200,
    headers: { ...encoding, ...headers, etag: entityTag(body) },
    body,
  }))
}

/** The document with the service's own paths, cookie and address. With the default settings it is gen/openapi.json. */
async function documentText({ publicUrl, ...place }: OpenApiSettings): Promise<string> {
  // Loaded on the first request.
  const { default: template } = await import('../../gen/openapi.json', { with: { type: 'json' } })
  const { servers, paths, components } = template
  const { sessionCookie } = components.securitySchemes
  const name = sessionCookieName(publicUrl?.startsWith('https:') === true)
  const document = {
    ...template,
    // Without a public URL it is wherever the document was found.
    servers: publicUrl === undefined ? servers : servers.map((server) => ({ ...server, url: publicUrl })),
    paths: Object.fromEntries(Object.entries(paths).map(([path, item]) => [placed(path, place), item])),
    components: {
      ...components,
      securitySchemes: { ...components.securitySchemes, sessionCookie: { ...sessionCookie, name } },
    },
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

/** A path of the template where the service has it. */
function placed(path: string, { basePath, endpointPrefix }: Omit<OpenApiSettings, 'publicUrl'>): string {
  const prefixed = templatePaths.basePath + templatePaths.endpointPrefix
  if (path.startsWith(`${prefixed}/`)) return basePath + endpointPrefix + path.slice(prefixed.length)
  return path.startsWith(`${templatePaths.basePath}/`) ? basePath + path.slice(templatePaths.basePath.length) : path
}
