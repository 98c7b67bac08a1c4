import { type CommandParser, defineScript } from 'redis'

// Each script touches one key, and the channel of the same name, so it runs on one node of a cluster. A life is a
// number of milliseconds from now on the server's clock; an empty one means forever.

/** Separates version and value in an entry. */
export const separator = '='
/** The same in entries that were written before 0.1.0. */
export const formerSeparator = ':'

/** A change of a value, as `Store.compareAndSet` describes it. */
export interface Change {
  readonly version: number
  readonly value: string
  /** Undefined means forever. */
  readonly ttlMs: number | undefined
  readonly wake: boolean
}

/** An addition to a set, as `Store.addMember` describes it. */
export interface Addition {
  readonly member: string
  /** Undefined means forever. */
  readonly ttlMs: number | undefined
  readonly most: number | undefined
}

const compareAndSet = defineScript({
  SCRIPT: `
local stored = redis.call('GET', KEYS[1])
local version = stored and string.match(stored, '^%d+')
if version ~= ARGV[1] then return 0 end
local entry = string.format('%.0f', version + 1) .. '${separator}' .. ARGV[2]
if ARGV[3] == '' then redis.call('SET', KEYS[1], entry) else redis.call('SET', KEYS[1], entry, 'PX', ARGV[3]) end
if ARGV[4] == '1' then redis.call('SPUBLISH', KEYS[1], '') end
return 1`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, key: string, { version, value, ttlMs, wake }: Change) {
    parser.pushKey(key)
    parser.push(String(version), value, ttlText(ttlMs), wake ? '1' : '')
  },
  transformReply: (reply: number) => reply === 1,
})

// A set is a sorted set; the score of a member is the time at which it expires. Every change removes the expired
// members, and the key expires together with its last member.
const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`
const removeExpired = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))`
const expireWithLastMember = `
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last == 'inf' then redis.call('PERSIST', KEYS[1]) elseif last then redis.call('PEXPIREAT', KEYS[1], last) end`

const addMember = defineScript({
  // The member is taken out first, so that those beyond the most are found among the others.
  SCRIPT: `${now}
${removeExpired}
local surplus = {}
local most = tonumber(ARGV[3])
if most then
  redis.call('ZREM', KEYS[1], ARGV[1])
  local count = redis.call('ZCARD', KEYS[1]) + 1
  if count > most then surplus = redis.call('ZRANGE', KEYS[1], 0, math.min(count - most, 10) - 1) end
  if count > 2 * most then redis.call('ZREMRANGEBYRANK', KEYS[1], 0, count - 2 * most - 1) end
end
local expiry = ARGV[2] == '' and 'inf' or string.format('%.0f', now + ARGV[2])
redis.call('ZADD', KEYS[1], expiry, ARGV[1])${expireWithLastMember}
return surplus`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, set: string, added: Addition) {
    parser.pushKey(set)
    parser.push(added.member, ttlText(added.ttlMs), added.most === undefined ? '' : String(added.most))
  },
  transformReply: (reply: string[]) => reply,
})

const removeMember = defineScript({
  SCRIPT: `${now}
${removeExpired}
redis.call('ZREM', KEYS[1], ARGV[1])${expireWithLastMember}`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, set: string, member: string) {
    parser.pushKey(set)
    parser.push(member)
  },
  transformReply: (_: null) => undefined,
})

const members = defineScript({
  SCRIPT: `${now}
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), 'inf')`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, set: string) {
    parser.pushKey(set)
  },
  transformReply: (reply: string[]) => reply,
})

// A script and not the command TIME, because a cluster runs it on the server of the key and nowhere else.
const serverTime = defineScript({
  SCRIPT: `return redis.call('TIME')`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, key: string) {
    parser.pushKey(key)
  },
  /** Epoch milliseconds, with a fraction. */
  transformReply: ([seconds, microseconds]: [string, string]) => Number(seconds) * 1000 + Number(microseconds) / 1000,
})

/** The scripts of the store, as a client's options take them. */
export const scripts = { compareAndSet, addMember, removeMember, members, serverTime }

function ttlText(ttlMs: number | undefined): string {
  return ttlMs === undefined ? '' : String(ttlMs)
}
