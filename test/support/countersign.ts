import { type Countersign, createCountersign as create } from '../../src/index.ts'
import { grouped } from '../../src/service/config/options.ts'
import type { FlatOptions } from '../../src/service/config.ts'

/** As `createCountersign`, with each option under one name, so that tests can merge options. */
export async function createCountersign(options: FlatOptions = {}): Promise<Countersign> {
  return await create(grouped(options))
}
