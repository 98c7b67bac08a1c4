import { spawn } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { said } from './redis-server.ts'

/** A disk that can be full. */
export interface SmallDisk extends AsyncDisposable {
  /** A folder on it, for the user of PostgreSQL. */
  readonly folder: string
  /** Leaves no room on it. */
  fill(): Promise<void>
  /** Makes room again. */
  free(): Promise<void>
}

/** Makes a disk in memory, which goes with the process that has it mounted, for nothing else. Needs overlay mounts. */
export async function mountSmallDisk(megabytes: number): Promise<SmallDisk> {
  const mounted = await mkdtemp(join(tmpdir(), 'countersign-disk-'))
  const mount = `mount --make-rprivate / && mount -t tmpfs -o size=${megabytes}m,mode=777 none ${mounted} && echo mounted`
  // Processes of PostgreSQL's user can look into those of their own only.
  const hold = 'exec setpriv --reuid=postgres --regid=postgres --clear-groups sleep infinity'
  const holder = spawn('unshare', ['--mount', 'sh', '-c', `${mount} && ${hold}`], { stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = (): void => void holder.kill('SIGKILL')
  process.once('exit', kill)
  await said(holder, 'mounted')
  const folder = `/proc/${holder.pid}/root${mounted}`
  const filler = join(folder, 'filler')
  return {
    folder,
    async fill() {
      const file = await open(filler, 'a')
      try {
        for (const size of [1 << 20, 1 << 12]) {
          await (async () => {
            for (;;) await file.write(Buffer.alloc(size))
          })().catch((error) => {
            if (error.code !== 'ENOSPC') throw error
          })
        }
      } finally {
        await file.close()
      }
    },
    free: () => rm(filler),
    async [Symbol.asyncDispose]() {
      process.off('exit', kill)
      kill()
      await rm(mounted, { recursive: true })
    },
  }
}
