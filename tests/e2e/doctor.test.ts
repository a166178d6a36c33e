// `headrace doctor`: a healthy installation passes, and each thing that is broken is named with its remedy.

import { Database as Sqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { lockDataDirectory } from "../../src/storage/files/data-directory-lock.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { freshDatabase, sharedPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { startUpstream } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";

interface Check {
  group: string;
  name: string;
  status: string;
  found: string;
  remedy: string | null;
}

interface Place {
  directory: string;
  dataDir: string;
  config: string;
}

const canary = "sk-canary-of-an-upstream-0123456789";
const lostPort = 9;
/** Checks of the machine that tests run on, and no business of theirs. */
const ofTheMachine = [
  "file descriptors",
  "memory",
  "processors",
  "disk",
  "inodes",
  "file system",
  "writing",
  "this machine's clock",
];

const places: Place[] = [];
function makePlace(yaml = ""): Place {
  const directory = mkdtempSync(join(tmpdir(), "headrace-doctor-"));
  const place = { directory, dataDir: join(directory, "data"), config: join(directory, "headrace.yaml") };
  writeFileSync(place.config, yaml);
  places.push(place);
  return place;
}

/** One that a server was started on once. */
let used: Place;
let server: ServerProcess;
let serving: Place;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let freePort: number;

beforeAll(async () => {
  upstream = await startUpstream();
  freePort = await portThatWasFree();
  serving = makePlace(
    `upstreams:\n  - { name: up, url: "${upstream.url}", api_key: ${canary} }\nmodels:\n  - { id: m, deployments: [{ upstream: up, model: upstream-model }] }\n`,
  );
  used = makePlace();
  const [running, once] = await Promise.all([
    startServerProcess({ ...serving, args: ["--port", String(freePort)] }),
    startServerProcess(used),
  ]);
  server = running;
  once.process.kill("SIGTERM");
  await once.process.exited;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  for (const { directory } of places) rmSync(directory, { recursive: true, force: true });
});

function portThatWasFree(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createTcpServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** A copy of the data directory as the server left it. */
async function usedPlace(yaml = ""): Promise<Place> {
  const place = makePlace(yaml);
  await Bun.$`cp -a ${used.dataDir} ${place.dataDir}`.quiet();
  return place;
}

interface Look {
  args?: readonly string[];
  env?: Record<string, string>;
}

async function doctor({ config, dataDir }: Place, { args = [], env = {} }: Look = {}) {
  const own = ["doctor", "--json", "--config", config, "--data-dir", dataDir, "--no-discover-local"];
  const outcome = await runCommand([...own, ...args], {
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", HOME: dataDir, ...env },
  });
  const report = JSON.parse(outcome.stdout) as { ok: boolean; checks: Check[] };
  const of = (status: string) =>
    report.checks.filter((check) => check.status === status && !ofTheMachine.includes(check.name));
  return { ...outcome, ...report, failures: of("failure"), warnings: of("warning") };
}

/** The one that has this name; fails with all of them where there is none. */
function named(checks: readonly Check[], name: string): Check {
  const check = checks.find((one) => one.name === name);
  if (!check) throw new Error(`no ${name} in ${JSON.stringify(checks, undefined, 2)}`);
  return check;
}

// hardening: O11
test("passes a healthy server with exit code 0 and no secret in the output", async () => {
  const { code, ok, failures, warnings, checks, stdout, stderr } = await doctor(serving, {
    args: ["--port", String(freePort)],
  });
  expect(failures).toEqual([]);
  expect(warnings).toEqual([]);
  expect([code, ok]).toEqual([0, true]);
  const found = (name: string) => named(checks, name).found;
  expect(found("server")).toContain(`process ${server.process.pid} at 127.0.0.1:${freePort}`);
  expect(found("readiness")).toStartWith("ready");
  expect(found("lock")).toContain(String(server.process.pid));
  expect(found("file descriptors")).toContain(`the server, process ${server.process.pid}`);
  expect(found("up")).toContain("1 model in");
  expect(found("SQLite file")).toStartWith("sound");
  expect(found("secret")).toContain("the one that the database was set up with");
  const key = (await Bun.file(join(serving.dataDir, "credentials.json")).json()).api_key;
  const secret = (await Bun.file(join(serving.dataDir, "secret")).text()).trim();
  for (const hidden of [canary, key, secret]) expect(stdout + stderr).not.toContain(hidden);
});

test("diagnoses the server named by HEADRACE_BASE_URL or --base-url, apart from the local one", async () => {
  const url = `http://127.0.0.1:${freePort}`;
  const here = await doctor(serving, { args: ["--port", String(freePort)], env: { HEADRACE_BASE_URL: `${url}/v1` } });
  expect(named(here.checks, "named server")).toMatchObject({ status: "ok", found: expect.stringContaining(url) });
  const elsewhere = await doctor(used, { args: ["--base-url", `${url}/v1`] });
  expect(named(elsewhere.checks, "named server").found).toContain("only this is seen from here");
  expect(named(elsewhere.checks, "readiness there")).toMatchObject({ status: "ok" });
  const nobody = await doctor(used, { env: { HEADRACE_BASE_URL: `http://127.0.0.1:${lostPort}/v1` } });
  expect(named(nobody.checks, "named server")).toMatchObject({
    status: "failure",
    found: expect.stringContaining("does not answer"),
    remedy: expect.stringContaining("HEADRACE_BASE_URL"),
  });
  expect(nobody.code).toBe(1);
});

test("fails if a server has run before and none runs now", async () => {
  const { code, failures, warnings, checks } = await doctor(used);
  expect(warnings).toEqual([]);
  expect(failures.map(({ name }) => name)).toEqual(["server"]);
  expect(failures[0]?.remedy).toContain("headrace serve");
  expect(named(checks, "spool").found).toBe("empty");
  expect(code).toBe(1);
});

test("reads mode, address and variables from the running server, whatever the shell has", async () => {
  const place = makePlace();
  await using running = await startServerProcess({
    ...place,
    args: ["--mode", "production", "--public-url", "https://ai.example.com", "--port", "0"],
    env: { HEADRACE_LAME_DUCK_SECONDS: "1" },
  });
  const outcome = await runCommand(["doctor", "--json", "--data-dir", place.dataDir], {
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", HOME: place.dataDir },
  });
  const { checks } = JSON.parse(outcome.stdout) as { checks: Check[] };
  expect(named(checks, "configuration").found).toContain("production mode");
  expect(named(checks, "variables").found).toContain("HEADRACE_LAME_DUCK_SECONDS");
  expect(named(checks, "server").found).toContain(String(running.process.pid));
});

test("does not require a server at the default port if another is named", async () => {
  const args = ["--base-url", `${upstream.url}/v1`, "--port", String(freePort)];
  const { checks } = await doctor(used, { args });
  expect(named(checks, "port").status).toBe("skipped");
});

test("reports what is missing before the first start", async () => {
  const { code, failures, checks } = await doctor(makePlace());
  expect(failures).toEqual([]);
  expect(named(checks, "directory")).toMatchObject({
    status: "warning",
    remedy: expect.stringContaining("headrace serve"),
  });
  expect(code).toBe(0);
});

test("prints 80 columns to a terminal, without colours if unwanted, and one line per finding to a pipe", async () => {
  const { config, dataDir } = await usedPlace('host: 0.0.0.0\nmode: "development"\n');
  const args = ["doctor", "--config", config, "--data-dir", dataDir, "--no-discover-local"];
  const env = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
  const terminal = await runCommand(args, { env: { ...env, NO_COLOR: "1" }, isTTY: true, columns: 80 });
  expect(terminal.stdout).not.toContain("\x1b[3");
  expect(terminal.stdout.split("\n").filter((line) => Bun.stringWidth(line) > 80)).toEqual([]);
  expect(terminal.stdout).toContain("Fix: ");
  const coloured = await runCommand(args, { env, isTTY: true, columns: 80 });
  expect(coloured.stdout).toContain("\x1b[31mFAILURE");
  const piped = await runCommand(args, { env });
  expect(piped.stdout).not.toContain("\x1b");
  expect(piped.stdout).toMatch(/^ {2}FAILURE {2}configuration .*needs production mode$/m);
  expect(piped.stderr).toBe("error: This fails: configuration.\n");
  expect(piped.code).toBe(1);
});

interface Broken {
  what: string;
  /** The check that finds it. */
  name: string;
  status?: "failure" | "warning";
  found: RegExp;
  remedy: RegExp;
  /** Gives where to look, and how. Closed when the test is over. */
  make(close: (closer: () => unknown) => void): Promise<[Place, Look?]>;
}

const upstreamAt = (url: string) => `upstreams:\n  - { name: up, url: "${url}", api_key: ${canary} }\n`;

/** A model server that answers a list of models in its own way. */
async function answering(close: (closer: () => unknown) => void, status: number, aheadSeconds = 0): Promise<string> {
  const http = createServer((_request, response) => {
    const date = new Date(Date.now() + aheadSeconds * 1000).toUTCString();
    response.writeHead(status, { "content-type": "application/json", date });
    response.end(JSON.stringify({ object: "list", data: [{ id: "a", object: "model" }] }));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  close(() => {
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

const diskFaults: Broken[] = [
  {
    what: "a disk of uploaded files without room",
    name: "disk of files",
    found: /2\.10 MB of 2\.10 MB free/,
    remedy: /uploads are refused and batches wait/,
    make: async (close) => {
      const disk = smallDisk(2);
      close(() => disk[Symbol.asyncDispose]());
      return [await usedPlace(`files: { directory: "${disk.path}" }\n`)];
    },
  },
  {
    what: "a disk of uploaded files that is read-only",
    name: "disk of files",
    found: /nothing can be written in .*EROFS/,
    remedy: /mount it read-write/,
    make: async (close) => {
      const disk = smallDisk(300);
      close(() => disk[Symbol.asyncDispose]());
      Bun.spawnSync(["mount", "-o", "remount,ro", disk.path]);
      return [await usedPlace(`files: { directory: "${disk.path}" }\n`)];
    },
  },
  {
    what: "a disk of models that is read-only",
    name: "disk of models",
    status: "warning",
    found: /nothing can be written in .*EROFS/,
    remedy: /Models that are there are served/,
    make: async (close) => {
      const disk = smallDisk(300);
      close(() => disk[Symbol.asyncDispose]());
      Bun.spawnSync(["mount", "-o", "remount,ro", disk.path]);
      const place = await usedPlace();
      symlinkSync(disk.path, join(place.dataDir, "models"));
      return [place];
    },
  },
];

const broken: Broken[] = [
  ...(canMount ? diskFaults : []),
  {
    what: "a mistake in the configuration file",
    name: "configuration",
    found: /headrace\.yaml:2:9 {2}port: must be a whole number from 0 to 65535/,
    remedy: /Give a port/,
    make: async () => [await usedPlace("mode: development\nport:   70000\n")],
  },
  {
    what: "a variable that is misspelt",
    name: "configuration",
    status: "warning",
    found: /HEADRACE_PROT: is not a known variable; did you mean HEADRACE_PORT/,
    remedy: /Change it/,
    make: async () => [await usedPlace(), { env: { HEADRACE_PROT: "7000" } }],
  },
  {
    what: "a server that was started with other variables",
    name: "variables",
    status: "warning",
    found: /HEADRACE_HOST is set only here/,
    remedy: /taken from the running server's variables/,
    make: async () => [serving, { args: ["--port", String(freePort)], env: { HEADRACE_HOST: "127.0.0.1" } }],
  },
  {
    what: "a secret that others may read",
    name: "permissions",
    found: /others may read secret \(0644\)/,
    remedy: /^chmod go= \S+\/secret$/,
    make: async () => {
      const place = await usedPlace();
      chmodSync(join(place.dataDir, "secret"), 0o644);
      return [place];
    },
  },
  {
    what: "a data directory that everybody may write to",
    name: "directory",
    found: /0777, .*everybody may write there/,
    remedy: /^chmod 700/,
    make: async () => {
      const place = await usedPlace();
      chmodSync(place.dataDir, 0o777);
      return [place];
    },
  },
  {
    what: "a port that another program holds",
    name: "port",
    found: /another program answers at 127\.0\.0\.1:\d+/,
    remedy: /ss -ltnp|--port/,
    make: async (close) => {
      const { port } = new URL(await answering(close, 404));
      return [await usedPlace(), { args: ["--port", port] }];
    },
  },
  {
    what: "a port that a program holds which says nothing",
    name: "port",
    found: /another program holds 127\.0\.0\.1:\d+, and does not speak HTTP/,
    remedy: /ss -ltnp/,
    make: async (close) => {
      const silent = createTcpServer((socket) => socket.end("220 ready\r\n"));
      await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
      close(() => silent.close());
      return [await usedPlace(), { args: ["--port", String((silent.address() as AddressInfo).port)] }];
    },
  },
  {
    what: "a port that a server on another data directory holds",
    name: "port",
    found: /a Headrace answers at .*does not use this data directory/,
    remedy: /--data-dir/,
    make: async () => [await usedPlace(), { args: ["--port", String(freePort)] }],
  },
  {
    what: "an address that is none of this machine",
    name: "port",
    found: /EADDRNOTAVAIL/,
    remedy: /HEADRACE_HOST/,
    make: async () => {
      const env = { HEADRACE_MODE: "production", HEADRACE_PUBLIC_URL: "http://127.0.0.1:9" };
      return [await usedPlace(), { args: ["--host", "192.0.2.77", "--port", "7"], env }];
    },
  },
  {
    what: "a server that runs and does not answer",
    name: "server",
    found: /it runs as process \d+, but does not answer/,
    remedy: /another --host or --port/,
    make: async (close) => {
      const place = await usedPlace();
      close(lockDataDirectory(place.dataDir));
      return [place, { args: ["--port", String(await portThatWasFree())] }];
    },
  },
  {
    what: "a server that is not ready",
    name: "readiness",
    found: /not ready: database failed/,
    remedy: /operating\.md/,
    make: async (close) => {
      const place = await usedPlace();
      close(lockDataDirectory(place.dataDir));
      const answers: Record<string, unknown> = {
        "/healthz": { status: "ok" },
        "/openapi.json": { info: { title: "Headrace", version: "0.1.0" } },
        "/readyz": { status: "not_ready", checks: { database: "failed", models: "ok" } },
      };
      const fake = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: (request) => Response.json(answers[new URL(request.url).pathname] ?? {}),
      });
      close(() => fake.stop(true));
      return [place, { args: ["--port", String(fake.port)] }];
    },
  },
  {
    what: "a public URL that leads elsewhere",
    name: "public URL",
    found: /healthz answered 502, and not as a Headrace/,
    remedy: /public_url/,
    make: async (close) => {
      const url = await answering(close, 502);
      return [serving, { args: ["--port", String(freePort), "--public-url", url] }];
    },
  },
  {
    what: "a public URL that leads to another Headrace",
    name: "public URL",
    found: /leads to another Headrace than this one/,
    remedy: /public_url/,
    make: async (close) => {
      const fake = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: (request) =>
          Response.json({ status: "ok", info: { title: "Headrace", version: "0.1.0" }, path: request.url.length }),
      });
      close(() => fake.stop(true));
      return [serving, { args: ["--port", String(freePort), "--public-url", `http://127.0.0.1:${fake.port}`] }];
    },
  },
  {
    what: "a database of a newer version",
    name: "schema",
    found: /version 999, and this Headrace knows \d+/,
    remedy: /newer Headrace/,
    make: async () => {
      const place = await usedPlace();
      const db = new Sqlite(join(place.dataDir, "headrace.db"));
      db.run("INSERT INTO schema_migrations (version, applied_at, checksum) VALUES (999, 0, 'x')");
      db.close();
      return [place];
    },
  },
  {
    what: "a database that another build made",
    name: "schema",
    found: /step 2 was made by another build/,
    remedy: /restore a backup/,
    make: async () => {
      const place = await usedPlace();
      const db = new Sqlite(join(place.dataDir, "headrace.db"));
      db.run("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2");
      db.close();
      return [place];
    },
  },
  {
    what: "another secret than that of the database",
    name: "secret",
    found: /not the one that the database was set up with/,
    remedy: /HEADRACE_SECRET/,
    make: async () => [await usedPlace(), { env: { HEADRACE_SECRET: "ab".repeat(32) } }],
  },
  {
    what: "a secret that is gone",
    name: "secret",
    found: /neither HEADRACE_SECRET nor the file `secret`/,
    remedy: /from a backup/,
    make: async () => {
      const place = await usedPlace();
      rmSync(join(place.dataDir, "secret"));
      return [place];
    },
  },
  {
    what: "a database file that is none",
    name: "SQLite",
    found: /headrace\.db cannot be read: .*not a database/,
    remedy: /Restore a backup/,
    make: async () => {
      const place = await usedPlace();
      for (const end of ["-wal", "-shm"]) rmSync(join(place.dataDir, `headrace.db${end}`), { force: true });
      writeFileSync(join(place.dataDir, "headrace.db"), "no database at all ".repeat(1_000), { mode: 0o600 });
      return [place];
    },
  },
  {
    what: "a database file that is damaged inside",
    name: "SQLite file",
    found: /damaged: /,
    remedy: /copy the data directory as it is/,
    make: async () => {
      const place = await usedPlace();
      const file = join(place.dataDir, "headrace.db");
      const db = new Sqlite(file);
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      const { rootpage } = db.query("SELECT rootpage FROM sqlite_master WHERE name = 'api_keys'").get() as {
        rootpage: number;
      };
      const { page_size: size } = db.query("PRAGMA page_size").get() as { page_size: number };
      db.close();
      const bytes = Buffer.from(await Bun.file(file).bytes());
      bytes.fill(0x5a, (rootpage - 1) * size, rootpage * size);
      writeFileSync(file, bytes);
      return [place];
    },
  },
  {
    what: "backups that nobody makes any more",
    name: "backup",
    status: "warning",
    found: /is \d+ days old/,
    remedy: /headrace backup/,
    make: async () => {
      const place = await usedPlace();
      const folder = join(place.dataDir, "backups", "headrace-20250101T000000Z");
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const part = { name: "headrace.db", bytes: 1, sha256: "0".repeat(64) };
      const kind = { format: "headrace-backup", format_version: 1, kind: "backup", headrace: "0.1.0", schema: 1 };
      writeFileSync(
        join(folder, "manifest.json"),
        JSON.stringify({ ...kind, created_at: 1_735_689_600, counts: {}, parts: [part] }),
      );
      return [place];
    },
  },
  {
    what: "a spool with what cannot be read",
    name: "spool files",
    status: "warning",
    found: /1 line cannot be read, first in spool\/00000001\.spool/,
    remedy: /dmesg/,
    make: async () => {
      const place = await usedPlace();
      mkdirSync(join(place.dataDir, "spool"), { recursive: true, mode: 0o700 });
      writeFileSync(join(place.dataDir, "spool", "00000001.spool"), '{"settle": torn\n', { mode: 0o600 });
      return [place];
    },
  },
  {
    what: "a model server that refuses the key",
    name: "up",
    found: /models answered 401: it refuses the key/,
    remedy: /api_key of the upstream up/,
    make: async (close) => [await usedPlace(upstreamAt(`${await answering(close, 401)}/v1`))],
  },
  {
    what: "a model server that is down",
    name: "up",
    found: /no connection to 127\.0\.0\.1:9 \(ECONNREFUSED\)/,
    remedy: /it runs, listens there/,
    make: async () => [await usedPlace(upstreamAt(`http://127.0.0.1:${lostPort}/v1`))],
  },
  {
    what: "a model server whose name nobody knows",
    name: "up",
    found: /the name no-such-host\.invalid cannot be resolved/,
    remedy: /DNS/,
    make: async () => [await usedPlace(upstreamAt("https://no-such-host.invalid/v1"))],
  },
  {
    what: "a model that its server does not have",
    name: "up models",
    status: "warning",
    found: /not in its list: missing-model/,
    remedy: /load the model there/,
    make: async (close) => {
      const model = "models:\n  - { id: m, deployments: [{ upstream: up, model: missing-model }] }\n";
      return [await usedPlace(upstreamAt(`${await answering(close, 200)}/v1`) + model)];
    },
  },
  {
    what: "a clock that is wrong by a minute and a half",
    name: "clock of up",
    found: /its clock is \d+\.\d s behind this machine's/,
    remedy: /timedatectl/,
    make: async (close) => [await usedPlace(upstreamAt(`${await answering(close, 200, -90)}/v1`))],
  },
  {
    what: "a clock that is a little wrong",
    name: "clock of up",
    status: "warning",
    found: /its clock is \d\.\d s ahead of this machine's/,
    remedy: /timedatectl/,
    make: async (close) => [await usedPlace(upstreamAt(`${await answering(close, 200, 9)}/v1`))],
  },
  {
    what: "a mail server that does not answer",
    name: "mail",
    found: /127\.0\.0\.1:9 does not take mail \(ESOCKET\)/,
    remedy: /HEADRACE_SMTP_URL/,
    make: async () => {
      const env = {
        HEADRACE_SMTP_URL: `smtp://me:mail-canary-1@127.0.0.1:${lostPort}`,
        HEADRACE_MAIL_FROM: "a@example.com",
      };
      return [await usedPlace(), { env }];
    },
  },
  {
    what: "a provider of single sign-on that does not answer",
    name: "single sign-on",
    found: /does not describe itself/,
    remedy: /openid-configuration/,
    make: async () => {
      const sso = `sso: { name: Corp, issuer: "http://127.0.0.1:${lostPort}", client_id: x, client_secret: sso-canary-1 }\n`;
      return [await usedPlace(sso)];
    },
  },
  {
    what: "a gateway that this node cannot reach",
    name: "gateway",
    found: /http:\/\/127\.0\.0\.1:9 does not answer \(ConnectionRefused|ECONNREFUSED\)/,
    remedy: /this machine may connect/,
    make: async () => {
      const place = await usedPlace();
      const url = `http://127.0.0.1:${lostPort}`;
      const identity = {
        gateway_url: url,
        gateway: url,
        node_id: "nod_1",
        name: "gpu-1",
        private_key: "node-canary-1",
        joined_at: 1,
      };
      writeFileSync(join(place.dataDir, "node.json"), JSON.stringify(identity), { mode: 0o600 });
      return [place];
    },
  },
  {
    what: "a database that lost its records",
    name: "installation",
    found: /the server does not start: The database has no accounts/,
    remedy: /headrace restore BACKUP/,
    make: async () => {
      const place = await usedPlace();
      using db = new Sqlite(join(place.dataDir, "headrace.db"));
      db.run("PRAGMA foreign_keys = OFF");
      for (const table of ["accounts", "installation"]) db.run(`DELETE FROM ${table}`);
      return [place];
    },
  },
  {
    what: "a database without tables beside a data directory that was used",
    name: "installation",
    found: /the server does not start: The database has no accounts/,
    remedy: /Put the database back/,
    make: async () => [
      await usedPlace(),
      {
        env: {
          HEADRACE_DATABASE_URL: await (await sharedPostgres()).emptyDatabase(),
          HEADRACE_SECRET: "cd".repeat(32),
        },
      },
    ],
  },
  {
    what: "the database of another installation",
    name: "installation",
    found: /the server does not start: .* belongs to another database/,
    remedy: /Name the database that it was used with/,
    make: async () => {
      const place = await usedPlace();
      writeFileSync(join(place.dataDir, "installation"), "inst_other\n");
      return [place];
    },
  },
  {
    what: "a model file that is not there",
    name: "models",
    found: /there is no such file/,
    remedy: /Check the path/,
    make: async () => [await usedPlace(), { args: ["--model", "/nowhere/qwen.gguf"] }],
  },
  {
    what: "a PostgreSQL that does not let us in",
    name: "PostgreSQL",
    found: /does not let the user “headrace” in/,
    remedy: /psql/,
    make: async () => {
      const url = new URL(await freshDatabase());
      url.password = "wrong-canary-1";
      return [await usedPlace(), { env: { HEADRACE_DATABASE_URL: url.href, HEADRACE_SECRET: "cd".repeat(32) } }];
    },
  },
  {
    what: "an index of PostgreSQL that no server has built",
    name: "PostgreSQL indexes",
    status: "warning",
    make: async () => {
      const url = await freshDatabase();
      await using db = new SQL(url, { max: 1 });
      await db`DROP INDEX usage_records_tried`;
      return [makePlace(), { env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "cd".repeat(32) } }];
    },
    found: /^not built yet: usage_records_tried; /,
    remedy: /indexes_not_built/,
  },
  {
    what: "a Redis that refuses the password",
    name: "Redis",
    found: /cannot be used: .*(WRONGPASS|AUTH)/,
    remedy: /HEADRACE_REDIS_URL/,
    make: async (close) => {
      const redis = await startRedis();
      close(() => redis[Symbol.asyncDispose]());
      await redis.command("CONFIG", "SET", "requirepass", "right-password");
      const env = {
        HEADRACE_DATABASE_URL: await freshDatabase(),
        HEADRACE_REDIS_URL: `redis://default:wrong-canary-1@127.0.0.1:${redis.port}/0`,
        HEADRACE_SECRET: "cd".repeat(32),
      };
      return [await usedPlace(), { env }];
    },
  },
  {
    what: "a Redis that is full",
    name: "Redis",
    found: /takes no writes: OOM/,
    remedy: /maxmemory/,
    make: async (close) => {
      const redis = await startRedis();
      close(() => redis[Symbol.asyncDispose]());
      await redis.command("CONFIG", "SET", "maxmemory", "1");
      const env = {
        HEADRACE_DATABASE_URL: await freshDatabase(),
        HEADRACE_REDIS_URL: redis.url,
        HEADRACE_SECRET: "cd".repeat(32),
      };
      return [await usedPlace(), { env }];
    },
  },
  {
    what: "a Redis that throws counters out",
    name: "Redis memory",
    status: "warning",
    found: /maxmemory-policy is allkeys-lru/,
    remedy: /noeviction/,
    make: async (close) => {
      const redis = await startRedis();
      close(() => redis[Symbol.asyncDispose]());
      await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
      const env = {
        HEADRACE_DATABASE_URL: await freshDatabase(),
        HEADRACE_REDIS_URL: redis.url,
        HEADRACE_SECRET: "cd".repeat(32),
      };
      return [await usedPlace(), { env }];
    },
  },
];

// hardening: O11
describe("the doctor names each fault with a remedy", () => {
  test.each(broken.map((one) => [one.what, one] as const))(
    "%s",
    async (_what, { name, status = "failure", make, ...expected }) => {
      const closers: (() => unknown)[] = [];
      try {
        const [place, look] = await make((closer) => closers.push(closer));
        const { code, failures, warnings, stdout, stderr } = await doctor(place, look);
        const found = (status === "failure" ? failures : warnings).filter((check) => check.name === name);
        expect(found.map((check) => check.found).join("\n") || stdout).toMatch(expected.found);
        expect(found.map((check) => check.remedy).join("\n")).toMatch(expected.remedy);
        if (status === "failure") {
          expect(code).toBe(1);
          expect(stderr).toContain(name);
        }
        expect(stdout + stderr).not.toMatch(/canary/);
      } finally {
        for (const close of closers) await close();
      }
    },
  );
});

test("passes healthy PostgreSQL and Redis with version, permissions and clock", async () => {
  await using redis = await startRedis();
  const env = {
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: "cd".repeat(32),
  };
  const { failures, checks } = await doctor(makePlace(), { env });
  expect(failures).toEqual([]);
  expect(named(checks, "PostgreSQL").found).toMatch(/^\d+ at 127\.0\.0\.1:\d+, UTF8/);
  expect(named(checks, "PostgreSQL role").status).toBe("ok");
  const clocks = checks.filter(({ group }) => group === "Clocks").map(({ name }) => name);
  expect(clocks).toEqual(["this machine's clock", "clock of PostgreSQL", "clock of Redis"]);
});
