// Secrets in files and in Vault at running servers: changed under load, unreadable for ten minutes, and never shown.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file's own syntax for references.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SecretValues } from "../../src/config/config.ts";
import { scrape } from "../support/exposition.ts";
import { startVault } from "../support/fake-vault.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { makeWorkspace } from "../support/program.ts";
import { startUpstream } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const body = JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "Hi" }] });

test("uses each new secret of a directory that is swapped 100 times under load, without a failed request", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  const at = (name: string) => join(workspace.directory, name);
  const secretOf = (version: number) => `sk-canary-${version}-${"x".repeat(200)}`;
  const put = (version: number) => {
    mkdirSync(at(`..v${version}`));
    writeFileSync(at(`..v${version}/key`), secretOf(version));
    symlinkSync(`..v${version}`, at("..data_tmp"));
    renameSync(at("..data_tmp"), at("..data"));
    if (version > 0) rmSync(at(`..v${version - 1}`), { recursive: true });
  };
  put(0);
  symlinkSync("..data/key", at("key"));
  writeFileSync(at("metrics-token"), "canary-metrics-token");
  writeFileSync(
    at("headrace.yaml"),
    `upstreams:\n  - { name: up, url: "${upstream.url}", api_key: "\${file:key}", max_concurrency: 8 }\n`,
  );
  await using server = await startServerProcess({
    dataDir: workspace.dataDir,
    config: at("headrace.yaml"),
    env: { HEADRACE_METRICS_TOKEN_FILE: at("metrics-token") },
  });
  const { api_key: key } = JSON.parse(readFileSync(join(workspace.dataDir, "credentials.json"), "utf8"));
  const operator = await makeOperatorKey(workspace.dataDir);
  const get = async (path: string) =>
    await (await fetch(server.url + path, { headers: { authorization: `Bearer ${operator}` } })).text();

  let isOver = false;
  const statuses: number[] = [];
  const client = async () => {
    while (!isOver) {
      const answer = await fetch(`${server.url}/v1/chat/completions`, {
        ...{ method: "POST", body },
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      });
      await answer.text();
      statuses.push(answer.status);
    }
  };
  const clients = [client(), client(), client()];
  const sent = () => new Set(upstream.requests.map(({ headers }) => headers.authorization));
  const waitFor = (version: number) =>
    until(() => sent().has(`Bearer ${secretOf(version)}`) || undefined, `the secret ${version} is used`, 20_000);
  try {
    await waitFor(0);
    for (let version = 1; version <= 100; version++) {
      put(version);
      if (version % 20 === 0) await waitFor(version);
    }
  } finally {
    isOver = true;
  }
  await Promise.all(clients);

  expect(statuses.length).toBeGreaterThan(20);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const written = new Set(Array.from({ length: 101 }, (_, version) => `Bearer ${secretOf(version)}`));
  for (const used of sent()) expect(written).toContain(used ?? "nothing");
  const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: "Bearer canary-metrics-token" } });
  expect(metrics.status).toBe(200);
  const environment = readFileSync(`/proc/${server.process.pid}/environ`, "utf8");
  const shown = [
    server.log(),
    environment,
    await metrics.text(),
    await get("/v1/admin/system"),
    await get("/v1/admin/upstreams"),
  ];
  const inEffect = await get("/v1/admin/configuration");
  expect(JSON.parse(inEffect)).toMatchObject({ sections: { upstreams: [{ api_key: "${file:key}" }] }, problems: [] });
  for (const text of [...shown, inEffect]) expect(text).not.toContain("canary");
  expect(JSON.parse(await get("/readyz")).checks).toMatchObject({ external_secrets: "ok" });
  expect(server.log()).not.toContain("secret_old");
}, 120_000);

test("serves with the last secret and warns while Vault is away for ten minutes, at two servers", async () => {
  await using upstream = await startUpstream();
  const vault = startVault({ "secret/data/openai": { api_key: "sk-canary-vault" } });
  const yaml = `upstreams:\n  - { name: up, url: "${upstream.url}", api_key: "\${vault:secret/data/openai#api_key}" }\n`;
  const env = { VAULT_ADDR: vault.url, VAULT_ROLE_ID: "role", VAULT_SECRET_ID: "canary-secret-id" };
  const clock = shiftedClock();
  const start = async () => {
    const secrets = new SecretValues({ env, clock });
    return { secrets, server: await startHeadrace({ yaml, env, secrets, clock }) };
  };
  const first = await start();
  await using _first = first.server;
  const second = await start();
  await using _second = second.server;
  const name = "vault:secret/data/openai#api_key";
  const readiness = async ({ server }: typeof first) => await (await server.request("/readyz")).json();

  vault.stop();
  for (let minute = 0; minute < 10; minute++) {
    clock.shift(60);
    for (const { secrets } of [first, second]) await secrets.poll();
  }
  for (const replica of [first, second]) {
    const { server } = replica;
    await server.reconfigure(yaml);
    const answer = await server.request("/v1/chat/completions", { body: JSON.parse(body) });
    expect(answer.status).toBe(200);
    await answer.text();
    expect(await readiness(replica)).toMatchObject({ status: "degraded", checks: { external_secrets: "degraded" } });
    const metrics = await scrape(server);
    expect(metrics.get("headrace_secret_age_seconds", { secret: name })).toBeGreaterThanOrEqual(600);
    expect(metrics.get("headrace_check", { check: "external_secrets" })).toBe(0);
    expect(server.logText()).not.toContain("canary");
  }
  expect(upstream.requests.at(-1)?.headers.authorization).toBe("Bearer sk-canary-vault");

  const again = startVault({ "secret/data/openai": { api_key: "sk-canary-new" } }, Number(new URL(vault.url).port));
  clock.shift(61);
  for (const replica of [first, second]) {
    expect(await replica.secrets.poll()).toMatchObject({ file: [name], turned: [{ name, failure: undefined }] });
    expect(await readiness(replica)).toMatchObject({ checks: { external_secrets: "ok" } });
  }
  again.stop();
}, 60_000);
