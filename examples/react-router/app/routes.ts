import { index, type RouteConfig, route } from '@react-router/dev/routes'

const paths = ['api/auth/*', 'c/*', 'cross-device/*', 'pages/*', '.well-known/*']

export default [
  index('routes/home.tsx'),
  ...paths.map((path) => route(path, 'routes/countersign.ts', { id: path })),
] satisfies RouteConfig
