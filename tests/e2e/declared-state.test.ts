// `headrace apply`, `diff` and `export` against real servers: files make a server what they say, and again nothing.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { type Gateway, startGateway } from "../support/nodes.ts";
import { canMount, emptyDisk, fillDisk, smallDisk } from "../support/small-disk.ts";

const secret = "sk-upstream-canary-7f3a";

const everything = `
kind: tier
name: gold
spec: { requests_per_minute: 300, tokens_per_minute: null, monthly_spend: 250, quotas: [{ unit: usd, amount: 5, per: day }] }
---
kind: account
name: web-shop
spec: { name: Web shop, tier: gold, monthly_tokens: 5000000, store_chats: true }
---
kind: upstream
name: dead
spec: { url: "http://127.0.0.1:9/v1", api_key: "\${DEAD_KEY}", max_concurrency: 4 }
---
kind: model
name: house/fast
spec:
  price: { input: 0.15, output: 0.6 }
  deployments: [{ upstream: dead, model: tiny }]
  fallbacks: [other]
  policies: { cache: { ttl_seconds: 60 } }
---
kind: mcp_server
name: weather
spec: { url: "https://tools.example.com/mcp", accounts: [web-shop], headers: { x-token: "\${DEAD_KEY}" } }
---
kind: webhook
name: ops
spec: { url: "https://hooks.example.com/headrace", events: [upstream.down] }
secret_to: secrets/ops
---
kind: key
name: ci
spec: { account: web-shop, environment: dev, name: CI, scopes: [models:read], monthly_spend: 20 }
secret_to: secrets/ci
`;

let directory: string;
let server: Gateway;
let run: Run;
type Run = ReturnType<typeof commandsOf>;

const stack: AsyncDisposable[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-declared-"));
  ({ server, run } = await started());
});

afterEach(async () => {
  for (const part of stack.splice(0)) await part[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

async function started(): Promise<{ server: Gateway; run: Run }> {
  const made = await startGateway();
  stack.push(made);
  return { server: made, run: commandsOf(made) };
}

function commandsOf(made: Gateway) {
  const keys = { DEAD_KEY: secret, UPSTREAM_DEAD_API_KEY: secret, MCP_SERVER_WEATHER_HEADERS_X_TOKEN: secret };
  const env = { HEADRACE_BASE_URL: made.baseUrl, HEADRACE_API_KEY: made.operator, ...keys };
  const command = (...args: string[]) => runCommand(args, { env });
  const admin = (path: string, body?: unknown, method = body ? "POST" : "GET") => made.admin(method, path, body);
  return Object.assign(command, { admin });
}

function file(text: string, name = "all.yaml"): string {
  const path = join(directory, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  return path;
}

test("creates all objects in the order of their references, and changes nothing the second time", async () => {
  const path = file(everything.split("---").reverse().join("---"));
  const planned = await run("apply", "-f", path, "--plan");
  expect([planned.code, planned.stderr]).toEqual([0, ""]);
  expect(planned.stdout).toContain("+ create account web-shop");
  expect(planned.stdout).toEndWith("Plan: 7 to create.\n");
  expect((await run.admin("/accounts")).body.data).toHaveLength(1);

  const applied = await run("apply", "-f", path, "--yes");
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect((await run("diff", "-f", path)).code).toBe(0);
  const again = await run("apply", "-f", path);
  expect([again.code, again.stdout]).toEqual([0, "No changes.\n"]);

  const model = (await run.admin("/models/house/fast")).body;
  expect(model.settings).toMatchObject({ price: { input: 0.15, output: 0.6 }, fallbacks: ["other"] });
  const { data: audit } = (await run.admin("/audit?action=documents.applied")).body;
  expect(audit).toHaveLength(1);
  expect(audit[0]).toMatchObject({
    target_id: "headrace",
    detail: {
      create: [
        ...["tier/gold", "account/web-shop", "upstream/dead", "model/house/fast"],
        ...["mcp_server/weather", "webhook/ops", "key/ci"],
      ],
    },
  });
});

test("reads a mounted ConfigMap of Kubernetes once, and directories in a directory", async () => {
  const tier =
    "kind: tier\nname: gold\nspec: { requests_per_minute: 3, tokens_per_minute: null, monthly_spend: 250 }\n";
  file(tier, "mounted/..2026_11_30/tier.yaml");
  symlinkSync("..2026_11_30", join(directory, "mounted/..data"));
  symlinkSync("..data/tier.yaml", join(directory, "mounted/tier.yaml"));
  file(tier.replace("gold", "iron"), "mounted/more/tier.yml");
  const applied = await run("apply", "-f", join(directory, "mounted"), "--yes");
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect(applied.stdout).toContain("Plan: 2 to create.");
});

test("names the changed fields and ends with 2 after a change by hand, and undoes the change", async () => {
  const path = file(everything);
  await run("apply", "-f", path, "--yes");
  await run.admin("/models/house/fast", { price: { input: 0.3, output: 0.6 }, aliases: ["fast"] }, "PATCH");
  await run.admin("/upstreams/dead", { api_key: "sk-another" }, "PATCH");

  const drift = await run("diff", "-f", path);
  expect(drift.code).toBe(2);
  expect(drift.stdout).toContain(
    '~ update model house/fast\n    price.input: 0.3 → 0.15\n    aliases: ["fast"] → default\n',
  );
  expect(drift.stdout).toContain("~ update upstream dead\n    api_key: changes (secret)\n");
  expect(drift.stderr).toContain("2 objects differ from the files.");

  expect((await run("apply", "-f", path, "--yes")).code).toBe(0);
  expect((await run("diff", "-f", path)).code).toBe(0);
});

test("reproduces an export on an empty installation", async () => {
  await run("apply", "-f", file(everything), "--yes");
  await run.admin("/accounts", { name: `Made by hand, with \${DOLLAR}` });
  const before = await run("export");
  expect(before.stdout).toContain(`api_key: \${UPSTREAM_DEAD_API_KEY}`);

  const other = await started();
  const dir = join(directory, "other");
  const applied = await other.run("apply", "-f", file(before.stdout, "export.yaml"), "--yes", "--secrets-dir", dir);
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  const after = await other.run("export");
  expect(after.stdout).toBe(before.stdout);
  expect((await other.run("diff", "-f", file(before.stdout, "export.yaml"))).code).toBe(0);
});

test("prunes only objects of its own set of files, suspends their accounts and resumes them", async () => {
  const path = file(everything);
  await run("apply", "-f", path, "--managed-by", "shop", "--yes");
  await run.admin("/upstreams", { name: "by-hand", url: "http://127.0.0.1:9/v1" });
  const tier = "kind: tier\nname: silver\nspec: { requests_per_minute: 5, tokens_per_minute: null }\n";
  const silver = file(tier, "silver.yaml");
  await run("apply", "-f", silver, "--managed-by", "other", "--yes");

  const foreign = await run("apply", "-f", silver, "--managed-by", "shop", "--yes");
  expect([foreign.code, foreign.stderr]).toEqual([
    1,
    expect.stringContaining("silver.yaml:2:1  name: the tier silver is managed by other."),
  ]);
  const own = file(tier.replace("silver", "bronze"), "bronze.yaml");
  const pruned = await run("apply", "-f", own, "--managed-by", "shop", "--prune", "--yes");
  expect([pruned.code, pruned.stderr]).toEqual([0, ""]);
  expect(pruned.stdout).toContain(
    '- suspend account web-shop\n    tier: "gold" → "free"\n    status: "active" → "suspended"\n',
  );
  const left = JSON.parse((await run("export", "--json")).stdout);
  expect(left.map(({ kind, name }: { kind: string; name: string }) => `${kind}/${name}`)).toEqual([
    ...["tier/bronze", "tier/silver", "account/first", "account/web-shop", "upstream/by-hand"],
  ]);
  expect(left[3]).toMatchObject({ managed_by: null, spec: { status: "suspended" } });

  rmSync(join(directory, "secrets"), { recursive: true });
  expect((await run("apply", "-f", path, "--managed-by", "shop", "--yes")).code).toBe(0);
  const accounts = (await run.admin("/accounts")).body.data;
  expect(accounts.map((one: { name: string; status: string }) => [one.name, one.status])).toEqual([
    ["First account", "active"],
    ["Web shop", "active"],
  ]);
});

test("goes on where an interrupted run ended, without a second account", async () => {
  const { declaredMarks, accounts } = server.governance;
  const insert = accounts.insertAccount.bind(accounts);
  accounts.insertAccount = () => Promise.reject(new Error("killed"));
  const path = file(everything);
  expect((await run("apply", "-f", path, "--yes")).code).toBe(1);
  const [mark] = (await declaredMarks.list()).filter(({ kind }) => kind === "account");
  accounts.insertAccount = insert;
  expect((await run("apply", "-f", path, "--yes")).code).toBe(0);
  expect((await accounts.findAccount(mark?.targetId ?? ""))?.name).toBe("Web shop");
  expect((await run.admin("/accounts")).body.data).toHaveLength(2);
});

test("refuses a wrong document with its line before changing anything", async () => {
  const wrong = [
    ["spec: { url: http://127.0.0.1:9/v1, max_concurency: 3 }", "3:37", "is no member of"],
    ["spec:\n  url: http://127.0.0.1:9/v1\n  max_concurrency: many", "5:3", "must be"],
    ["spec: [1]", "3:7", "must be a mapping"],
    ["specs: {}", "3:1", "is no member of a document"],
    ["spec: { monthly_spend: 1e400 }", "3:24", "spec.monthly_spend: must be a finite number"],
    [`spec: { url: "\${NOWHERE}" }`, "3:14", "NOWHERE, which is not set"],
    ["spec: { url: http://127.0.0.1:9/v1, cache_salt: [{ a: 1 }] }", "3:37", "must be"],
  ] as const;
  for (const [rest, line, message] of wrong) {
    const path = file(`kind: upstream\nname: up\n${rest}\n---\n${everything}`);
    const refused = await run("apply", "-f", path, "--yes");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`${path}:${line}  `)]);
    expect(refused.stderr).toContain(message);
  }
  expect((await run.admin("/accounts")).body.data).toHaveLength(1);
});

test("shows secrets in no plan, export, audit event or log", async () => {
  const path = file(everything);
  const texts = [await run("apply", "-f", path, "--plan", "--json"), await run("apply", "-f", path, "--yes")];
  texts.push(await run("export"), await run("export", "--json"), await run("diff", "-f", path));
  const audit = JSON.stringify((await run.admin("/audit")).body);
  const made = ["ops", "ci"].map((name) => readFileSync(join(directory, "secrets", name), "utf8").trim());
  expect(made.every((one) => one.length > 20)).toBe(true);
  for (const text of [...texts.map(({ stdout, stderr }) => stdout + stderr), audit, server.logText()]) {
    for (const one of [secret, ...made]) expect(text).not.toContain(one);
  }
});

test("writes the secret of a new key once to its file, and replaces a lost key that was never used", async () => {
  const path = file(everything);
  const target = join(directory, "secrets", "ci");
  const without = file(everything.replace("secret_to: secrets/ci", ""), "without.yaml");
  const refused = await run("apply", "-f", without, "--yes");
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining("without.yaml:32:7  name: its secret is made"),
  ]);
  expect(existsSync(join(directory, "secrets"))).toBe(false);

  await run("apply", "-f", path, "--yes");
  const first = readFileSync(target, "utf8").trim();
  expect(statSync(target).mode & 0o777).toBe(0o600);
  const models = (key: string) => server.request("/v1/models", { headers: { authorization: `Bearer ${key}` } });

  rmSync(target);
  expect((await run("diff", "-f", path)).code).toBe(0);
  const noted = await run("apply", "-f", path, "--yes");
  expect([noted.code, noted.stderr]).toEqual([
    0,
    expect.stringContaining("The file with the secret of key ci does not exist here."),
  ]);
  expect((await run("apply", "-f", path, "--yes", "--replace-lost")).stdout).toContain("~ replace key ci");
  const second = readFileSync(target, "utf8").trim();
  expect([(await models(first)).status, (await models(second)).status]).toEqual([401, 200]);

  rmSync(target);
  const used = await until(async () => {
    const again = await run("apply", "-f", path, "--plan", "--replace-lost");
    return again.code === 1 && again.stderr;
  }, "the use of the key to be recorded");
  expect(used).toContain("the key ci is in use");
});

test("keeps a key managed while its replacement is interrupted", async () => {
  const path = file(everything);
  await run("apply", "-f", path, "--yes");
  const { declaredMarks, keys } = server.governance;
  const keyMark = async () => (await declaredMarks.list()).find(({ kind }) => kind === "key");
  const before = await keyMark();
  rmSync(join(directory, "secrets", "ci"));
  const update = keys.updateKey.bind(keys);
  keys.updateKey = () => Promise.reject(new Error("killed"));
  expect((await run("apply", "-f", path, "--yes", "--replace-lost")).code).toBe(1);
  keys.updateKey = update;
  expect(await keyMark()).toMatchObject({ targetId: before?.targetId, managedBy: before?.managedBy });
  expect((await run("apply", "-f", path, "--yes", "--replace-lost")).stdout).toContain("~ replace key ci");
  const chain = await keys.findChainById(before?.targetId ?? "");
  expect(chain?.keys[0].revoked).toBe(true);
});

test.skipIf(!canMount)("replaces a key whose secret could not be written because the disk was full", async () => {
  await using disk = smallDisk(1);
  const target = join(disk.path, "ci");
  const path = file(everything.replace("secret_to: secrets/ci", `secret_to: ${target}`));
  fillDisk(disk.path);
  const full = await run("apply", "-f", path, "--yes");
  expect([full.code, full.stderr]).toEqual([1, expect.stringContaining("Run the command again with --replace-lost.")]);
  emptyDisk(disk.path);
  const again = await run("apply", "-f", path, "--replace-lost", "--yes");
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("~ replace key ci")]);
  expect(readFileSync(target, "utf8")).toMatch(/^sk_dev_\S+\n$/);
});

test("refuses two secrets in one file before changing anything", async () => {
  const path = file(everything.replace("secret_to: secrets/ops", "secret_to: secrets/ci"));
  const refused = await run("apply", "-f", path, "--yes");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("as that of webhook ops")]);
  expect((await run.admin("/accounts")).body.data).toHaveLength(1);
});

test("reads and puts documents while another object could not be made any more", async () => {
  await run("apply", "-f", file(everything), "--yes");
  using db = new Database(join(server.dataDir, "headrace.db"));
  db.run("UPDATE webhooks SET url = 'http://10.0.0.9/hook'");
  const spec = { account: "web-shop", environment: "dev", name: "Deploy", scopes: ["models:read"] };
  const made = await run.admin("/documents/key/deploy", { spec }, "PUT");
  expect([made.status, made.body.secret]).toEqual([200, expect.stringContaining("sk_dev_")]);
  const { status, body } = await run.admin("/documents/webhook/ops");
  expect([status, body.spec.url]).toEqual([200, "http://10.0.0.9/hook"]);
  expect((await run("export")).stdout).toContain("http://10.0.0.9/hook");
  expect((await run.admin("/documents/webhook/ops?managed_by=headrace", undefined, "DELETE")).status).toBe(200);
});

test("does not report the first account as suspended without suspending it", async () => {
  const refused = await run.admin("/documents/account/first", undefined, "DELETE");
  expect(refused.status).toBe(403);
  expect((await run.admin("/documents/account/first")).body.spec.status).toBeUndefined();
});

test("exports a variable of its own for each secret, also for names that give the same variable", async () => {
  const named = (name: string) => ({ name, url: "http://127.0.0.1:9/v1", api_key: `sk-of-${name}` });
  for (const name of ["gpu-1", "gpu.1"]) await run.admin("/upstreams", named(name));
  const { stdout } = await run("export", "--kind", "upstream");
  expect(stdout.match(/\$\{\w+\}/g)).toEqual([`\${UPSTREAM_GPU_1_API_KEY}`, `\${UPSTREAM_GPU_1_API_KEY_2}`]);
});

test("shows the URL of a Slack webhook in no plan, export or audit event, and finds its change", async () => {
  const url = "https://hooks.slack.example/services/T0/B0/canary";
  const slack = (of: string) =>
    file(`kind: webhook\nname: chat\nspec: { url: "${of}", format: slack }\nsecret_to: chat\n`);
  const texts = [
    await run("apply", "-f", slack(url), "--plan", "--json"),
    await run("apply", "-f", slack(url), "--yes"),
  ];
  expect((await run("diff", "-f", slack(url))).code).toBe(0);
  const changed = await run("apply", "-f", slack(`${url}2`), "--yes");
  expect(changed.stdout).toContain("~ update webhook chat\n    url: changes (secret)\n");
  const exported = await run("export");
  expect(exported.stdout).toContain(`url: \${WEBHOOK_CHAT_URL}`);
  const [hook] = (await run.admin("/webhooks")).body.data;
  expect(hook.url).toBe(`${url}2`);
  await run.admin(`/webhooks/${hook.id}`, undefined, "DELETE");
  const audit = JSON.stringify((await run.admin("/audit")).body);
  expect(audit).toContain("webhook.deleted");
  for (const text of [...[...texts, changed, exported].map(({ stdout }) => stdout), audit]) {
    expect(text).not.toContain("canary");
  }
});

test("finds hand changes of keys, webhooks and MCP servers, and makes a revoked key anew", async () => {
  const path = file(everything);
  await run("apply", "-f", path, "--yes");
  const account = (await run.admin("/accounts")).body.data[1].id;
  const [key] = (await run.admin(`/accounts/${account}/keys`)).body.data;
  const [hook] = (await run.admin("/webhooks")).body.data;
  await run.admin(`/webhooks/${hook.id}`, { enabled: false }, "PATCH");
  await run.admin("/tool-servers/weather", { timeout_seconds: 5, headers: { "x-token": "other" } }, "PATCH");
  await run.admin(`/keys/${key.id}`, undefined, "DELETE");
  const drift = await run("diff", "-f", path);
  expect(drift.stdout).toContain("~ update webhook ops\n    enabled: false → default\n");
  expect(drift.stdout).toContain(
    "~ update mcp_server weather\n    timeout_seconds: 5 → default\n    headers.x-token: changes (secret)\n",
  );
  expect(drift.stdout).toContain("+ create key ci\n");

  const kept = await run("apply", "-f", path, "--yes");
  expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining("which exists. Move that file away first.")]);
  rmSync(join(directory, "secrets", "ci"));
  expect((await run("apply", "-f", path, "--yes")).code).toBe(0);
  const changed = file(everything.replace("monthly_spend: 20", "monthly_spend: 30"));
  expect((await run("apply", "-f", changed, "--yes")).stdout).toContain("monthly_spend: 20 → 30");
  expect((await run("diff", "-f", changed)).code).toBe(0);
});

test("puts and deletes one object by its external name", async () => {
  const spec = { name: "Books", tier: "pro" };
  const made = await run.admin("/documents/account/books", { managed_by: "terraform", spec }, "PUT");
  expect(made).toEqual({
    status: 200,
    body: { object: "document", kind: "account", name: "books", managed_by: "terraform", spec, secrets: [] },
  });
  expect(await run.admin("/documents/account/books", { managed_by: "terraform", spec }, "PUT")).toEqual(made);
  expect(await run.admin("/documents/account/books")).toEqual(made);
  expect((await run.admin("/documents/account/books", { spec }, "PUT")).status).toBe(400);
  expect((await run.admin("/documents/account/books", undefined, "DELETE")).status).toBe(400);
  expect((await run.admin("/documents/account/books?managed_by=terraform", undefined, "DELETE")).status).toBe(200);
  expect((await run.admin("/documents/account/none")).status).toBe(404);
  expect((await run.admin("/documents/nothing/none")).status).toBe(400);
  expect((await run.admin("/accounts")).body.data).toHaveLength(2);
});

test("keeps a webhook of an account in its environment, and prunes it", async () => {
  const account = "kind: account\nname: web-shop\nspec: { name: Web shop }\n";
  const spec = '{ url: "https://hooks.example.com/a", account: web-shop, environment: live, events: [key.expiring] }';
  const path = file(`${account}---\nkind: webhook\nname: shop\nspec: ${spec}\n`);
  const apply = ["apply", "-f", path, "--managed-by", "one", "--secrets-dir", join(directory, "secrets"), "--yes"];
  const applied = await run(...apply);
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect((await run("diff", "-f", path, "--managed-by", "one")).code).toBe(0);
  const { accounts, declaredMarks } = server.governance;
  const [, shop] = await accounts.listAccounts({ after: undefined, limit: 5 });
  const mark = (await declaredMarks.list()).find(({ kind }) => kind === "webhook");
  using db = new Database(join(server.dataDir, "headrace.db"));
  const rows = () => db.query("SELECT id, account_id, environment, events FROM webhooks").all();
  expect(rows()).toEqual([
    { id: mark?.targetId, account_id: shop?.id, environment: "live", events: expect.stringContaining("key.expiring") },
  ]);
  expect((await run("export")).stdout).toContain("account: web-shop");

  for (const [wrong, why] of [
    [spec.replace("environment: live, ", ""), "account and environment go together"],
    [spec.replace("live", "test"), "cannot change"],
    [spec.replace("key.expiring", "upstream.down"), "events"],
  ] as const) {
    const text = `${account}---\nkind: webhook\nname: shop\nspec: ${wrong}\n`;
    const refused = await run(...apply.with(2, file(text, "wrong.yaml")));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(why)]);
  }
  expect((await run(...apply.with(2, file(account, "less.yaml")), "--prune")).code).toBe(0);
  expect(rows()).toEqual([]);
});

test("changes nothing if the server changed since the plan", async () => {
  const body = { managed_by: "a", documents: [{ kind: "account", name: "books", spec: { name: "Books" } }] };
  const { digest } = (await run.admin("/apply", { ...body, plan: true })).body;
  await run.admin("/apply", body);
  const late = await run.admin("/apply", { ...body, expect: digest });
  expect([late.status, late.body.error.message]).toEqual([400, expect.stringContaining("changed since this plan")]);
});

test("reads no other kinds for one document, and the keys of several documents in one query", async () => {
  const second =
    "\n---\n{ kind: key, name: cd, spec: { account: web-shop, environment: dev, name: CD }, secret_to: secrets/cd }";
  const path = file(everything + second);
  await run("apply", "-f", path, "--yes");
  const { accounts, keys, declaredMarks } = server.governance;
  const made = (await declaredMarks.list()).filter(({ kind }) => kind === "key").map(({ targetId }) => targetId);
  expect(made).toHaveLength(2);
  using listAccounts = spyOn(accounts, "listAccounts");
  using findKeys = spyOn(keys, "findKeys");
  using findChainById = spyOn(keys, "findChainById");
  const tier = { managed_by: "headrace", spec: { requests_per_minute: 7, tokens_per_minute: null } };
  expect((await run.admin("/documents/tier/gold", tier, "PUT")).status).toBe(200);
  expect([listAccounts.mock.calls, findKeys.mock.calls]).toEqual([[], []]);

  expect((await run.admin("/documents/key/ci")).status).toBe(200);
  expect(findKeys.mock.calls).toEqual([[[made[1] ?? ""]]]);
  expect((await run("diff", "-f", file(everything + second))).code).toBe(2);
  expect(findKeys.mock.calls.slice(1)).toEqual([[made]]);
  expect(findChainById.mock.calls.filter(([id]) => made.includes(id))).toEqual([]);
});

for (const [method, nth] of [
  ["DELETE", 2],
  ["PUT", 1],
] as const) {
  test(`leaves an object to the manager that adopted it during a ${method} without a manager`, async () => {
    const { accounts } = server.governance;
    const spec = { requests_per_minute: 9, tokens_per_minute: null };
    await run.admin("/tiers/gold", spec, "PUT");
    let reads = 0;
    const listTiers = accounts.listTiers.bind(accounts);
    accounts.listTiers = async () => {
      const tiers = await listTiers();
      reads += 1;
      if (reads === nth) {
        const documents = [{ kind: "tier", name: "gold", spec }];
        expect((await run.admin("/apply", { managed_by: "other", documents })).status).toBe(200);
      }
      return tiers;
    };
    const body = method === "PUT" ? { spec: { ...spec, requests_per_minute: 1 } } : undefined;
    const late = await run.admin("/documents/tier/gold", body, method);
    accounts.listTiers = listTiers;
    expect([late.status, late.body.error?.message]).toEqual([503, expect.stringContaining("Another request changes")]);
    expect((await run.admin("/documents/tier/gold")).body).toMatchObject({ managed_by: "other", spec });
  });
}
