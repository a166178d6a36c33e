// deploy/nginx as it is shipped, but for addresses and places of files, run by a real nginx in front of servers of a test.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNginx } from "../../bench/nginx.ts";
import { until } from "./headrace.ts";

const nginx = findNginx() ?? "nginx";
const shipped = join(import.meta.dir, "../../deploy/nginx");

export interface NginxSite {
  directory: string;
  /** Port on 127.0.0.1; known before nginx runs, as servers are told their public URL. */
  port: number;
  url: string;
  /** The site of compose.yaml, in front of servers at these ports of 127.0.0.1; resolves once it answers. */
  start(ports: readonly number[]): Promise<void>;
  /** A file of deploy/nginx with each text replaced. Throws where it has none of it. */
  text(name: string, replace: readonly (readonly [from: string | RegExp, to: string])[]): string;
  /** What nginx says of a site, and its exit code. */
  check(site: string): Promise<{ code: number; said: string }>;
  /** Content of access.log or error.log. */
  log(name: "access" | "error"): string;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function prepareNginxSite(): Promise<NginxSite> {
  const directory = mkdtempSync(join(tmpdir(), "headrace-nginx-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  copyFileSync(join(shipped, "headrace-proxy.conf"), join(directory, "headrace-proxy.conf"));
  let child: Bun.Subprocess | undefined;
  const run = (file: string, ...more: string[]) =>
    Bun.spawn([nginx, "-c", file, "-p", directory, "-e", join(directory, "error.log"), ...more], { stderr: "pipe" });
  const include = [/include \/\S+;/g, `include ${join(directory, "headrace-proxy.conf")};`] as const;
  const text: NginxSite["text"] = (name, replace) => {
    const all = name === "headrace-proxy.conf" ? replace : [...replace, include];
    return all.reduce(
      (before, [from, to]) => {
        const after = before.replaceAll(from, to);
        if (after === before) throw new Error(`${name} has no ${from}`);
        return after;
      },
      readFileSync(join(shipped, name), "utf8"),
    );
  };
  return {
    ...{ directory, port, url, text },
    async start(ports) {
      // It is shipped for two, and its comment says what to do with more.
      if (ports.length > 2) {
        const proxy = text("headrace-proxy.conf", [["_tries 2;", `_tries ${ports.length};`]]);
        writeFileSync(join(directory, "headrace-proxy.conf"), proxy);
      }
      const site = text("compose.conf", [["listen 80;", `listen 127.0.0.1:${port};`]]);
      child = run(writeConfiguration(directory, forServers(site, ports)));
      const answers = () =>
        fetch(`${url}/healthz`).then(
          ({ ok }) => ok,
          () => false,
        );
      await until(answers, "nginx answers");
    },
    async check(site) {
      const checked = run(writeConfiguration(directory, site), "-t");
      const said = await new Response(checked.stderr).text();
      return { code: await checked.exited, said };
    },
    log: (name) => readFileSync(join(directory, `${name}.log`), "utf8"),
    async [Symbol.asyncDispose]() {
      child?.kill("SIGTERM");
      await child?.exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Each line of the first of its two servers once for each of these, in the place of all lines of servers. */
function forServers(site: string, ports: readonly number[]): string {
  return site
    .replace(/^ *server headrace-[^1].*\n/gm, "")
    .replace(/^ *server headrace-1:7545.*\n/gm, (line) =>
      ports.map((one) => line.replace("headrace-1:7545", `127.0.0.1:${one}`)).join(""),
    );
}

function writeConfiguration(directory: string, site: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const file = join(directory, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; pid ${directory}/pid; error_log ${directory}/error.log warn;
${process.getuid?.() === 0 ? "user root;" : ""} worker_processes 2; events { worker_connections 512; }
http { ${temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join(" ")} access_log ${directory}/access.log;
${site} }`,
  );
  return file;
}

/** Below the ports that systems give to whoever asks for any: nobody who does has it by the time it is used. */
const ownPorts = { first: 12_000, count: 20_000 } as const;

/** Free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = ownPorts.first + Math.floor(Math.random() * ownPorts.count);
    try {
      await Bun.serve({ port, hostname: "127.0.0.1", fetch: () => new Response() }).stop(true);
      return port;
    } catch {
      // Somebody has it.
    }
  }
  throw new Error("No port is free.");
}
