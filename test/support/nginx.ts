import { type RunningProxy, startProxy } from './proxy-process.ts'
import { freePort } from './redis-server.ts'

/** An nginx in front of instances of the service, stopped when the test ends. */
export async function startNginx(upstreamPorts: readonly number[]): Promise<RunningProxy> {
  const port = await freePort()
  return await runNginx(port, behindOne(port, upstreamPorts))
}

/** An nginx with a configuration of the test's own: what is in the http block. It has to listen on `port`. */
export async function runNginx(port: number, http: string): Promise<RunningProxy> {
  return await startProxy({
    program: 'nginx',
    port,
    configuration: (folder) => configuration(folder, http),
    args: (folder, file) => ['-c', file, '-p', folder, '-e', 'stderr'],
  })
}

/** What else nginx writes goes into a folder of its own. */
function configuration(folder: string, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes 1;
    pid ${folder}/pid;
    events { worker_connections 2048; }
    http {
      access_log off;
      ${temporary.join('\n')}
      ${http}
    }
  `
}

/** As in deploy/nginx/countersign.conf, without TLS and gRPC. */
function behindOne(port: number, upstreamPorts: readonly number[]): string {
  const servers = upstreamPorts.map((upstream) => `server 127.0.0.1:${upstream} max_fails=0;`)
  return `
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
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Host $http_host;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_buffering off;
        proxy_read_timeout 60s;
      }
    }
  `
}
