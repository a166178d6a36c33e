// The baseline: nginx with `proxy_pass` and kept-alive connections on both sides, no log, no checks.
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, stop, until } from "./child.ts";
import { processTree } from "./process-usage.ts";

export interface Nginx {
  version: string;
  port: number;
  /** Master and worker. */
  pids: readonly number[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Debian's is not on everybody's PATH. */
const defaultPlaces = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"];

export function findNginx(): string | undefined {
  return Bun.which("nginx") ?? defaultPlaces.find(isExecutable);
}

/** `prefix`: what its command begins with, as `placement.ts` has it. `connections`: most at once, on both sides. */
export async function startNginx(
  executable: string,
  upstreamPort: number,
  { prefix = [], connections = 4_096 }: { prefix?: readonly string[]; connections?: number } = {},
): Promise<Nginx> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-nginx-"));
  const port = await freePort();
  const file = join(directory, "nginx.conf");
  writeFileSync(file, configuration({ directory, port, upstreamPort, connections }));
  const child = Bun.spawn([...prefix, executable, "-c", file, "-p", directory, "-e", join(directory, "error.log")], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const dispose = async () => {
    await stop(child);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${await new Response(child.stderr).text()}`);
      return (await answers(port)) || undefined;
    }, "nginx starts");
  } catch (error) {
    await dispose();
    throw error;
  }
  return { version: versionOf(executable), port, pids: processTree(child.pid), [Symbol.asyncDispose]: dispose };
}

function configuration(given: { directory: string; port: number; upstreamPort: number; connections: number }): string {
  const { directory, port, upstreamPort, connections } = given;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  // Its worker would change to a user that cannot write to the directory where it is run as root.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  return `
daemon off;
${user}
worker_processes 1;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log warn;
worker_rlimit_nofile ${connections + 100};
events { worker_connections ${connections}; }
http {
  access_log off;
  keepalive_requests 1000000000;
  ${temporary.map((name) => `${name}_temp_path ${directory}/${name};`).join("\n  ")}
  upstream mock {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    client_max_body_size 16m;
    client_body_buffer_size 1m;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;
}

async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/v1/models`)).ok;
  } catch {
    return false;
  }
}

export function versionOf(executable: string): string {
  const { stderr } = Bun.spawnSync([executable, "-v"]);
  return stderr
    .toString()
    .trim()
    .replace(/^nginx version: /, "");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
