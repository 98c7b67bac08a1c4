import { type RunningProxy, startProxy } from './proxy-process.ts'

/** An HAProxy with a configuration of the test's own, stopped when the test ends. It has to listen on `port`. */
export async function runHaproxy(port: number, configuration: string): Promise<RunningProxy> {
  return await startProxy({
    program: 'haproxy',
    port,
    configuration: () => configuration,
    // In the foreground, and without a warning for each server that it cannot reach.
    args: (_folder, file) => ['-db', '-f', file],
  })
}
