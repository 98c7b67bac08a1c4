import { setTimeout as sleep } from 'node:timers/promises'

/** Redis' answer to TIME: seconds of the epoch, and microseconds. */
const timeAnswer = /\*2\r\n\$10\r\n(\d{10})\r\n(?=\$\d\r\n\d{1,6}\r\n)/

/** Whether an answer of Redis tells the time. */
export function tellsTime(chunk: Buffer): boolean {
  return timeAnswer.test(chunk.toString('latin1'))
}

/** For the answers of a TCP proxy: tells the time as a server does whose clock is ahead by so many seconds. */
export function clockAhead(seconds: number): (chunk: Buffer) => Buffer {
  return (chunk) => {
    const ahead = (_: string, told: string): string => `*2\r\n$10\r\n${Number(told) + seconds}\r\n`
    return Buffer.from(chunk.toString('latin1').replace(timeAnswer, ahead), 'latin1')
  }
}

/** For the answers of a TCP proxy: the time, and whatever is told after it, comes so many milliseconds late. */
export function clockLate(ms: number): (chunk: Buffer) => Promise<Buffer> {
  return async (chunk) => {
    if (tellsTime(chunk)) await sleep(ms)
    return chunk
  }
}
