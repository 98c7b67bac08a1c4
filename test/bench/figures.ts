import { type Action, actions, type ByAction } from '../../bench/simulate/day.ts'
import type { ActionFigures, Cost, Figures } from '../../bench/simulate/figures.ts'

const idle = { instanceMicros: 0, redisMicros: 0, replicaMicros: 0, commands: 0 }

/** The same cost at any load. */
export const steady = (micros: number): Cost => ({
  light: { utilization: 0.1, micros },
  busy: { utilization: 0.9, micros },
})

/** Figures by which an event costs 1 ms of an instance, 100 µs of Redis and 2 commands, and leaves nothing. */
export function roundFigures(changes: Partial<Record<Action, Partial<ActionFigures>>> = {}): Figures {
  const plain: ActionFigures = {
    instance: steady(1000),
    redis: steady(100),
    replicas: steady(50),
    commands: 2,
    records: {},
  }
  return {
    measured: { machine: '', redis: '', commit: '', date: '' },
    actions: Object.fromEntries(
      actions.map((action) => [action, { ...plain, ...changes[action] }]),
    ) as ByAction<ActionFigures>,
    watcher: { ...idle, instanceMicros: 10, redisMicros: 1, commands: 0.1, heapBytes: 0 },
    idle: { ...idle, instanceMicros: 1000 },
    instanceBytes: 0,
  }
}
