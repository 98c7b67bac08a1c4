import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freePort } from './redis-server.ts'

/** An nginx of our own, stopped when the test ends. Resolves with its address, and with what it says of failures. */
export async function startNginx(upstreamPorts: readonly number[]): Promise<{ readonly url: string; log(): string }> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration(folder, port, upstreamPorts))
  const child = spawn('nginx', ['-c', file, '-p', folder, '-e', 'stderr'], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
    await rm(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}: ${log}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { url, log: () => log }
}

/** As in docs/operations.md. What else nginx writes goes into a folder of its own. */
function configuration(folder: string, port: number, upstreamPorts: readonly number[]): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const servers = upstreamPorts.map((upstream) => `server 127.0.0.1:${upstream} max_fails=0;`)
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes 1;
    pid ${folder}/pid;
    events { worker_connections 2048; }
    http {
      access_log off;
      ${temporary.join('\n')}
      upstream countersign {
        ${servers.join('\n')}
        keepalive 32;
      }
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://countersign;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Host $host;
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          proxy_set_header X-Forwarded-Host $host;
          proxy_set_header X-Forwarded-Proto $scheme;
          proxy_buffering off;
          proxy_read_timeout 60s;
        }
      }
    }
  `
}
