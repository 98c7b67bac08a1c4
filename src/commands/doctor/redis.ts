import { redisTlsOf } from '../../service-store.ts'
import type { ExaminedServer, RedisFacts } from '../../store/redis/examine.ts'
import { type Check, type Finding, ok, problem, warning } from './check.ts'
import type { Examination } from './examination.ts'

/** Part of its memory that a server has to use to count as nearly full. */
const nearlyFull = 0.9

/** Whether the Redis servers keep what they are given. That they are new enough is part of the check "store". */
export const redisCheck: Check<Examination> = {
  name: 'redis',
  needs: ['store'],
  limitMs: 5500,
  applies: ({ redisUrl }) => redisUrl !== undefined,
  async run({ settings, redisUrl = '' }) {
    // Loaded on demand, because the embedded default does not need the Redis client.
    const { examineRedis } = await import('../../store/redis/examine.ts')
    const servers = await examineRedis(redisUrl, redisTlsOf(settings))
    const findings = servers.flatMap((server) => judge(server, servers.length))
    return findings.length > 0 ? findings : [ok(servers.map(describe).join('; '))]
  },
}

function judge(server: ExaminedServer, servers: number): Finding[] {
  if ('problem' in server) {
    return [problem(`a server cannot be asked: ${server.problem}`, 'Mend that server, or remove it from the cluster.')]
  }
  const findings: Finding[] = []
  const { maxMemory, usedMemory, policy, persistent, replicas } = server
  const isBounded = maxMemory !== undefined && maxMemory > 0
  if (policy === 'unknown') {
    findings.push(
      warning(
        'Redis does not say what it does when its memory is full',
        'Permit INFO, or make sure that its maxmemory-policy is noeviction.',
      ),
    )
  } else if (policy !== 'noeviction') {
    const saw = `Redis drops sessions and orders when its memory is full: its maxmemory-policy is ${policy}`
    const fix = 'Set maxmemory-policy to noeviction.'
    findings.push(isBounded ? problem(saw, fix) : warning(`${saw}, though it has no maxmemory yet`, fix))
  }
  if (isBounded && usedMemory !== undefined && usedMemory > maxMemory * nearlyFull) {
    const percent = Math.round((usedMemory / maxMemory) * 100)
    findings.push(warning(`Redis uses ${percent} % of its maxmemory`, 'Raise its maxmemory before nobody can sign in.'))
  }
  if (persistent === false && servers === 1 && !replicas) {
    findings.push(
      warning(
        'Redis keeps nothing on disk and has no replica, so its restart signs everybody out',
        'Set appendonly to yes, or give it a replica.',
      ),
    )
  }
  return findings
}

function describe(server: ExaminedServer): string {
  if ('problem' in server) return server.problem
  const { version = 'of an unknown version', policy, persistent }: RedisFacts = server
  const kept = persistent === undefined ? '' : persistent ? ', keeps its data on disk' : ', keeps nothing on disk'
  return `Redis ${version}, maxmemory-policy ${policy}${kept}`
}
