import { type RunningProxy, startProxy } from './proxy-process.ts'

/**
 * A Caddy with the sites of a Caddyfile, stopped when the test ends. One of them has to be `http://127.0.0.1:` and
 * `port`.
 */
export async function runCaddy(port: number, sites: string): Promise<RunningProxy> {
  return await startProxy({
    program: 'caddy',
    port,
    configuration: () => `{\n  admin off\n  auto_https off\n}\n\n${sites}`,
    args: (_folder, file) => ['run', '--config', file, '--adapter', 'caddyfile'],
    // Caddy keeps what it ran with, and certificates.
    environment: (folder) => ({ XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }),
  })
}
