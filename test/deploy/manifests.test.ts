import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { resolveSettings, unknownVariables } from '../../src/service/config.ts'
import { signInClients } from '../support/clients.ts'
import { run } from '../support/command.ts'
import { completeOrder, signInWith } from '../support/flows.ts'
import { keptLog } from '../support/log-lines.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { orderClients } from '../support/orders.ts'
import { freePort, redisCli, said, spawnRedis } from '../support/redis-server.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { spawnService, startService } from '../support/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const dockerfile = await readFromRoot('Dockerfile')
const page = await readFromRoot('docs/containers.md')

/**
 * Time in seconds that a stop can take after its drain: requests in progress have ten, audit events on their way some
 * more.
 */
const graceSeconds = 10
const { drainSeconds: defaultDrainSeconds, port: defaultPort } = resolveSettings({})

const toJson = 'import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)'

// biome-ignore lint/suspicious/noExplicitAny: tests look at fields that they name.
async function readYaml(path: string): Promise<any[]> {
  return JSON.parse((await run(systemPython, ['-c', toJson, join(root, 'deploy', path)])).stdout)
}

function seconds(duration: string): number {
  const [, number] = /^(\d+)s$/.exec(duration) ?? []
  return Number(number)
}

const exposed = Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1])
const userOfImage = Number(/^USER (\d+):/m.exec(dockerfile)?.[1])

test('the image exposes the port that the service listens on by itself', () => {
  expect([exposed, /PORT=(\d+)/.exec(dockerfile)?.[1]]).toEqual([defaultPort, String(defaultPort)])
})

describe.skipIf(!hasPart('python3-yaml'))('the Compose file', () => {
  test('gives the service settings that there are, its secrets as files only, and time to stop', async () => {
    const [{ services, secrets, networks }] = await readYaml('compose/compose.yaml')
    const { countersign, redis } = services
    expect(unknownVariables(countersign.environment)).toEqual([])
    for (const name of ['COUNTERSIGN_STORE_FILE', 'COUNTERSIGN_SECRET_FILE']) {
      const file = countersign.environment[name].replace('/run/secrets/', '')
      expect(countersign.secrets).toContain(file)
      expect(secrets[file].file).toBe(`./secrets/${file}`)
    }
    expect(countersign.ports).toEqual([`127.0.0.1:${exposed}:${exposed}`])
    expect(seconds(countersign.stop_grace_period)).toBeGreaterThan(defaultDrainSeconds + graceSeconds)
    expect(countersign).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
    expect([redis.ports, redis.networks, networks.store]).toEqual([undefined, ['store'], { internal: true }])
    expect(redis.volumes).toContain('redis:/data')
    expect((await run('git', ['check-ignore', 'deploy/compose/secrets/x'], { cwd: root })).stdout).not.toBe('')
  })

  test.skipIf(!hasPart('redis-server'))(
    'runs a Redis that the service can use with the users of the page, and that keeps what it has acknowledged',
    async () => {
      const folder = temporaryFolder()
      const [, snippet = ''] = /<!-- executed by test\/deploy -->\n\n```sh\n([\s\S]*?)```/.exec(page) ?? []
      await run('sh', ['-euc', snippet], { cwd: folder })
      expect((await stat(join(folder, 'secrets'))).mode & 0o777).toBe(0o700)
      const [{ services }] = await readYaml('compose/compose.yaml')
      const configuration = await readFromRoot('deploy/compose/redis.conf')
      const here = configuration.replace('dir /data', `dir ${folder}`).replace('/run/secrets', join(folder, 'secrets'))
      await writeFile(join(folder, 'redis.conf'), here)
      const port = await freePort()
      const startRedis = async () => {
        const args = [join(folder, 'redis.conf'), '--port', String(port), '--bind', '127.0.0.1']
        const child = spawnRedis(args)
        onTestFinished(() => void child.kill('SIGKILL'))
        await said(child, 'Ready to accept connections')
        return child
      }
      const first = await startRedis()

      const [, check] = services.redis.healthcheck.test
      // Rejects if it fails.
      await run('sh', ['-c', check.replace('redis-cli', `redis-cli -p ${port}`)])
      await expect(redisCli('-p', String(port), 'get', 'x')).rejects.toThrow('NOAUTH')

      const address = await readFile(join(folder, 'secrets/countersign_store'), 'utf8')
      expect(new URL(address.trim()).host).toBe('redis:6379')
      const store = address.trim().replace('redis:6379', `127.0.0.1:${port}`)
      const secret = (await readFile(join(folder, 'secrets/countersign_secret'), 'utf8')).trim()
      const { logger, lines } = keptLog()
      const { url, service } = await startService({ store, secret, logger })
      const { token } = await signInWith((signInClients.REST as (typeof signInClients)[string])(url))
      await completeOrder((orderClients.REST as (typeof orderClients)[string])(url))
      // Of another eviction policy, for one, there would be a warning.
      expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
      const admin = new URL(store)
      const login = ['--no-auth-warning', '--user', admin.username, '--pass', admin.password]
      for (const forbidden of [['flushall'], ['config', 'get', 'save'], ['get', 'other:key']]) {
        await expect(redisCli('-p', String(port), ...login, ...forbidden)).rejects.toThrow('NOPERM')
      }
      await service.close(0)
      first.kill('SIGKILL')
      await startRedis()
      const again = await startService({ store, secret })
      expect((await again.service.introspect(token))?.adapterId).toBe('nimiq')
    },
  )
})

describe.skipIf(!hasPart('python3-yaml'))('the manifests for Kubernetes', () => {
  async function deployment() {
    const documents = await readYaml('kubernetes/countersign.yaml')
    const byKind = Object.fromEntries(documents.map((document) => [document.kind, document]))
    const { spec: pod, metadata } = byKind.Deployment.spec.template
    return { byKind, pod, labels: metadata.labels, container: pod.containers[0] }
  }

  test('name settings, ports, paths and labels that there are', async () => {
    const { byKind, pod, labels, container } = await deployment()
    const settings: Record<string, string> = byKind.ConfigMap.data
    expect(unknownVariables(settings)).toEqual([])
    for (const value of Object.values(settings)) expect(value).toEqual(expect.any(String))
    const { service } = await spawnedWith(settings)
    const { startupProbe, livenessProbe, readinessProbe } = container
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      expect((await fetch(service.url + httpGet.path)).status).toBe(200)
      expect(httpGet.port).toBe('http')
    }
    expect(container.ports).toEqual([{ name: 'http', containerPort: exposed }])
    expect(byKind.Service.spec.ports[0].targetPort).toBe('http')
    for (const selector of [
      byKind.Deployment.spec.selector.matchLabels,
      byKind.Service.spec.selector,
      byKind.PodDisruptionBudget.spec.selector.matchLabels,
      byKind.NetworkPolicy.spec.podSelector.matchLabels,
      pod.topologySpreadConstraints[0].labelSelector.matchLabels,
    ]) {
      expect(selector).toEqual(labels)
    }
    const [secret] = await readYaml('kubernetes/secret.example.yaml')
    const [{ mountPath, name }] = container.volumeMounts
    expect(pod.volumes).toEqual([{ name, secret: { secretName: secret.metadata.name, defaultMode: 0o440 } }])
    const files = ['COUNTERSIGN_STORE_FILE', 'COUNTERSIGN_SECRET_FILE'].map((variable) => settings[variable])
    expect(files).toEqual(Object.keys(secret.stringData).map((file) => `${mountPath}/${file}`))
  })

  test('let a pod end only after its drain, and keep one of two', async () => {
    const { byKind, pod, container } = await deployment()
    const drain = Number(byKind.ConfigMap.data.COUNTERSIGN_DRAIN_SECONDS)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drain + graceSeconds)
    const { periodSeconds, failureThreshold } = container.readinessProbe
    expect(drain).toBeGreaterThan(periodSeconds * failureThreshold)
    expect(byKind.Deployment.spec).toMatchObject({ replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 0 } } })
    expect(byKind.PodDisruptionBudget.spec.minAvailable).toBe(1)
  })

  test('take from the container what it does not need, for the user of the image', async () => {
    const { pod, container } = await deployment()
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: userOfImage, seccompProfile: { type: 'RuntimeDefault' } },
    })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(container.resources.limits.memory).toBeDefined()
  })

  test('lead to the Service by an Ingress that waits longer than for a heartbeat', async () => {
    const { byKind } = await deployment()
    for (const { metadata, spec } of await readYaml('kubernetes/ingress.yaml')) {
      expect(Number(metadata.annotations['nginx.ingress.kubernetes.io/proxy-read-timeout'])).toBeGreaterThan(25)
      const [{ host, http }] = spec.rules
      expect(spec.tls[0].hosts).toEqual([host])
      expect(http.paths[0].backend.service.name).toBe(byKind.Service.metadata.name)
      expect(http.paths[0].backend.service.port.name).toBe(byKind.Service.spec.ports[0].name)
    }
  })
})

/** A service with the settings of the ConfigMap, and secrets in files of its own. */
async function spawnedWith(settings: Readonly<Record<string, string>>) {
  const { COUNTERSIGN_STORE_FILE: _store, COUNTERSIGN_SECRET_FILE: _secret, ...others } = settings
  return { service: await spawnService({ ...others, COUNTERSIGN_STORE: 'sqlite::memory:' }) }
}
