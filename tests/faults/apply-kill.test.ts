// `kill -9` of `headrace apply`, and of its server, in the middle: applied again, all is as after a whole run.
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { startGateway } from "../support/nodes.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startServerProcess } from "../support/server-process.ts";

const main = join(import.meta.dir, "..", "..", "src", "main.ts");
const documents = `
kind: tier
name: gold
spec: { requests_per_minute: 300, tokens_per_minute: null, monthly_spend: 250 }
---
kind: account
name: web-shop
spec: { name: Web shop, tier: gold }
---
kind: account
name: archive
spec: { name: Archive, tier: gold }
---
kind: upstream
name: dead
spec: { url: "http://127.0.0.1:9/v1", max_concurrency: 4 }
---
kind: model
name: house/fast
spec: { price: { input: 0.15, output: 0.6 }, deployments: [{ upstream: dead, model: tiny }] }
---
kind: webhook
name: ops
spec: { url: "https://hooks.example.com/headrace", events: [upstream.down] }
---
kind: key
name: ci
spec: { account: web-shop, environment: dev, name: CI, scopes: [models:read] }
---
kind: key
name: nightly
spec: { account: archive, environment: dev, name: Nightly, scopes: [models:read] }
`;
const objects = documents.split("---").length;

const stack: AsyncDisposable[] = [];
const directories: string[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function directoryOf(): string {
  const directory = mkdtempSync(join(tmpdir(), "headrace-apply-kill-"));
  directories.push(directory);
  mkdirSync(join(directory, "home"));
  writeFileSync(join(directory, "all.yaml"), documents);
  return directory;
}

const applying = (directory: string) => [
  ...["apply", "-f", join(directory, "all.yaml"), "--secrets-dir", join(directory, "secrets")],
  ...["--yes", "--replace-lost"],
];

/** The command as a process of its own. */
function startApply(directory: string, env: Record<string, string>) {
  return Bun.spawn([process.execPath, main, ...applying(directory)], {
    cwd: directory,
    env: { PATH: "/usr/bin:/bin", HOME: join(directory, "home"), ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** What a whole run makes, as documents. */
async function whole(): Promise<string> {
  const server = await startGateway();
  stack.push(server);
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.operator };
  const applied = await runCommand(applying(directoryOf()), { env });
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  return (await runCommand(["export"], { env })).stdout;
}

/** Applies again, and compares with a whole run. */
async function expectWhole(directory: string, env: { HEADRACE_BASE_URL: string; HEADRACE_API_KEY: string }) {
  const applied = await runCommand(applying(directory), { env });
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect((await runCommand(applying(directory), { env })).stdout).toBe("No changes.\n");
  expect((await runCommand(["export"], { env })).stdout).toBe(await whole());
  for (const name of ["ci", "nightly"]) {
    const key = readFileSync(join(directory, "secrets", `key-${name}`), "utf8").trim();
    const answer = await fetch(`${env.HEADRACE_BASE_URL}/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(answer.status).toBe(200);
  }
}

test.each([1, 3, objects])(
  "goes on after a kill of the command at object %i",
  async (at) => {
    const server = await startGateway();
    stack.push(server);
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.operator };
    const directory = directoryOf();
    const marks = server.governance.declaredMarks;
    const put = marks.put.bind(marks);
    let count = 0;
    let killed: Promise<number> | undefined;
    marks.put = async (...asked) => {
      if (++count === at) {
        command.kill("SIGKILL");
        killed = command.exited;
        await killed;
      }
      return put(...asked);
    };
    const command = startApply(directory, env);
    await until(() => killed !== undefined, "the command is in the middle", 20_000);
    expect(await killed).not.toBe(0);
    marks.put = put;
    expect(existsSync(join(directory, "secrets"))).toBe(false);
    // The server may still be at the objects of the request that lost its client.
    await until(async () => (await runCommand(applying(directory), { env })).code === 0, "applied", 20_000);
    await expectWhole(directory, env);
  },
  60_000,
);

test.each([2, 5])(
  "goes on after a kill of the server with %i objects made",
  async (at) => {
    const directory = directoryOf();
    const dataDir = join(directory, "data");
    const config = join(directory, "headrace.yaml");
    writeFileSync(config, "");
    const first = await startServerProcess({ dataDir, config });
    stack.push(first);
    const operator = await makeOperatorKey(dataDir);
    const command = startApply(directory, { HEADRACE_BASE_URL: first.baseUrl, HEADRACE_API_KEY: operator });
    const db = new Database(join(dataDir, "headrace.db"), { readonly: true });
    const made = db.query<{ n: number }, []>("SELECT count(*) AS n FROM declared_objects");
    await until(() => (made.get()?.n ?? 0) >= at, "some objects are made", 20_000);
    first.process.kill("SIGKILL");
    await first.process.exited;
    db.close();
    expect(await command.exited).not.toBe(0);

    const second = await startServerProcess({ dataDir, config });
    stack.push(second);
    await expectWhole(directory, { HEADRACE_BASE_URL: second.baseUrl, HEADRACE_API_KEY: operator });
  },
  60_000,
);
