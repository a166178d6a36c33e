// The commands of operators against a real server: accounts, people, upstreams, tiers, replicas and the audit log.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type CommandOutcome, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let operator: string;
let account: { id: string };

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  operator = await makeOperatorKey(server.dataDir);
  account = await json("accounts", "create", "Web shop", "--tier", "pro");
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** Runs a command with the operator's key, at a terminal of 80 columns. */
function headrace(...args: string[]): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, NO_COLOR: "1" };
  return runCommand(args, { env, isTTY: true, columns: 80 });
}

/** Runs a command, which must succeed and fit the terminal. */
async function shown(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await headrace(...args);
  expect({ args, code, stderr: code === 0 ? "" : stderr }).toEqual({ args, code: 0, stderr: "" });
  expect(stdout.split("\n").filter((line) => Bun.stringWidth(line) > 80)).toEqual([]);
  return stdout;
}

// biome-ignore lint/suspicious/noExplicitAny: each test says what must be in the answer
async function json(...args: string[]): Promise<any> {
  return JSON.parse(await headrace(...args, "--json").then(({ stdout }) => stdout));
}

describe("headrace accounts", () => {
  test("lists, shows and changes accounts by name", async () => {
    expect(await shown("accounts")).toMatch(new RegExp(`^Web shop +${account.id} +pro +active`, "m"));
    await shown("accounts", "set", "web shop", "--monthly-spend", "500", "--quotas", "20 usd per day");
    expect(await json("accounts", "show", "Web shop")).toMatchObject({
      monthly_spend: 500,
      quotas: [{ unit: "usd", amount: 20, per: "day" }],
    });
    expect(await shown("accounts", "show", "Web shop")).toContain("$500.00 per month, 20 usd per day");
    await shown("accounts", "set", account.id, "--monthly-spend", "unlimited", "--quotas", "tier");
    expect(await json("accounts", "show", account.id)).toMatchObject({ monthly_spend: "unlimited", quotas: null });
  });

  test("suspends an account and resumes it", async () => {
    const { body } = await createKey();
    const call = () => server.request("/v1/models", { headers: { authorization: `Bearer ${body.key}` } });
    expect((await call()).status).toBe(200);
    await shown("accounts", "suspend", "Web shop");
    await until(async () => (await call()).status !== 200, "the key is refused");
    expect(await json("accounts", "list", "--suspended")).toMatchObject([{ id: account.id }]);
    await shown("accounts", "resume", "Web shop");
    await until(async () => (await call()).status === 200, "the key works again");
    expect(await shown("accounts", "keys", "Web shop")).toContain("Till");
  });

  test("refuses an unknown account, and a change without options", async () => {
    expect(await headrace("accounts", "show", "nope")).toMatchObject({
      code: 1,
      stderr: "error: There is no account `nope`. headrace accounts lists them.\n",
    });
    expect((await headrace("accounts", "set", "Web shop")).code).toBe(2);
  });

  async function createKey() {
    const made = await server.request(`/v1/admin/accounts/${account.id}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${operator}` },
      body: { name: "Till", environment: "live", scopes: ["models:read"] },
    });
    return { body: (await made.json()) as { key: string } };
  }
});

describe("headrace people", () => {
  test("invites a person into any account, and refuses an unknown person", async () => {
    const invited = await headrace("people", "invite", "ada@example.com", "--account", "Web shop", "--role", "owner");
    expect(invited.code).toBe(0);
    expect(invited.stdout).toMatch(/^http\S+\n$/);
    expect((await headrace("people", "invite", "ada@example.com")).code).toBe(2);
    for (const who of ["ada@example.com", "ada", "usr_0"]) {
      const { code, stderr } = await headrace("people", "show", who);
      expect({ who, code, stderr }).toEqual({
        ...{ who, code: 1 },
        stderr: `error: No person has the address or id \`${who}\`. headrace people lists them.\n`,
      });
    }
  });
});

describe("headrace suspend and resume", () => {
  const statusOf = async (key: string) =>
    (await server.request("/v1/models", { headers: { authorization: `Bearer ${key}` } })).status;

  test("blocks a key of another account by its id, and by account and name, and revokes it", async () => {
    const made = await server.request(`/v1/admin/accounts/${account.id}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${operator}` },
      body: { name: "Kiosk", environment: "live", scopes: ["models:read"] },
    });
    const { id, key } = (await made.json()) as { id: string; key: string };
    for (const which of [[id], ["Kiosk", "--account", "Web shop"]]) {
      expect(await shown("keys", "suspend", ...which)).toContain("is suspended");
      await until(async () => (await statusOf(key)) !== 200, "the key is refused");
      expect(await shown("accounts", "keys", "Web shop")).toMatch(/^Kiosk +\S+ +suspended/m);
      expect(await shown("keys", "resume", ...which)).toContain("works again");
      await until(async () => (await statusOf(key)) === 200, "the key works again");
    }
    expect((await headrace("keys", "suspend", "key_0")).code).toBe(1);
    expect((await headrace("keys", "suspend", "Kiosk")).stderr).toContain("No key matches");
    expect(await shown("keys", "revoke", id, "--yes")).toContain(`${id} is revoked`);
    await until(async () => (await statusOf(key)) === 401, "the key is refused");
    const again = await shown("keys", "revoke", "Kiosk", "--account", "Web shop", "--yes");
    expect(again).toContain("was revoked already");
    for (const verb of ["suspend", "resume"]) expect(await shown("keys", verb, id)).toBe(`${id} is revoked.\n`);
  });

  test("blocks a person and an app", async () => {
    const person = await openServerPeople(server).addPerson("grace");
    expect(await shown("people", "suspend", person.email)).toContain("is suspended");
    expect(await json("people", "show", person.id)).toMatchObject({ suspended_at: expect.any(Number) });
    expect(await shown("people")).toMatch(/grace \S* *- +suspended/);
    expect(await shown("people", "show", person.email)).toContain("Suspended  since ");
    await shown("people", "resume", person.id);
    const [app] = [await json("apps", "create", "Notes", "--redirect-uri", "https://notes.example/callback")];
    expect(await shown("apps", "suspend", "Notes")).toContain("is suspended");
    await shown("apps", "resume", app.id);
    expect((await headrace("apps", "suspend", "app_0")).code).toBe(1);
  });

  test("tells a key without admin:manage why it blocks no key of another account", async () => {
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key };
    const { code, stderr } = await runCommand(["keys", "suspend", "key_0"], { env });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("admin:manage") });
  });
});

describe("headrace upstreams", () => {
  test("lists, tests, drains and undrains a server of the file", async () => {
    expect(await shown("upstreams")).toMatch(/^up +ok +\d+ +0/m);
    expect(await shown("upstreams", "test", "up")).toContain("answers in");
    expect(await shown("upstreams", "drain", "up")).toBe("up gets nothing new. Nothing runs there.\n");
    expect(await json("upstreams", "show", "up")).toMatchObject({ state: "draining" });
    expect(await shown("upstreams", "resume", "up")).toBe("up gets requests again.\n");
  });

  test("adds, changes and removes a server, with its key from a variable", async () => {
    const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, UP_KEY: "up-secret-1" };
    const { url } = upstream;
    const added = await runCommand(["upstreams", "add", "gpu-7", url, "--api-key", `\${UP_KEY}`, "--json"], { env });
    expect(JSON.parse(added.stdout)).toMatchObject({ name: "gpu-7", has_api_key: true, source: "database" });
    expect(added.stdout).not.toContain("up-secret-1");
    await shown("upstreams", "set", "gpu-7", "--max-concurrency", "3", "--no-discover");
    expect(await json("upstreams", "show", "gpu-7")).toMatchObject({ max_concurrency: 3, discover: false });
    expect((await headrace("upstreams", "set", "gpu-7")).code).toBe(2);
    await shown("upstreams", "remove", "gpu-7", "--yes");
    expect((await headrace("upstreams", "show", "gpu-7")).code).toBe(1);
  });

  test("ends with 1 and the reason for a server that does not answer", async () => {
    await headrace("upstreams", "add", "gone", "http://127.0.0.1:9/v1");
    const { code, stderr } = await headrace("upstreams", "test", "gone");
    expect(code).toBe(1);
    expect(stderr).toStartWith("error: gone does not work: ");
    await shown("upstreams", "remove", "gone", "--yes");
  });
});

describe("headrace tiers", () => {
  test("makes a tier, changes one of its limits and keeps the others", async () => {
    await shown("tiers", "set", "team", "--requests-per-minute", "300", "--monthly-spend", "250");
    await shown("tiers", "set", "team", "--monthly-spend", "none", "--environments", "live");
    const tiers: { name: string }[] = await json("tiers", "--all");
    expect(tiers.find(({ name }) => name === "team")).toMatchObject({
      ...{ requests_per_minute: 300, tokens_per_minute: null, monthly_spend: null, environments: ["live"] },
    });
    expect(await shown("tiers", "--all")).toContain("team");
    await shown("tiers", "remove", "team", "--yes");
  });
});

describe("headrace replicas", () => {
  test("drains the only replica after a question, and undrains it", async () => {
    const [only] = await json("replicas");
    const { code, stderr: asked } = await headrace("replicas", "drain", only.id);
    expect({ code, asked }).toEqual({
      code: 1,
      asked: expect.stringContaining(`until \`headrace replicas undrain ${only.id}\``),
    });
    expect(asked).not.toContain("cannot be undone");
    const readiness = async () => (await server.request("/readyz")).json() as Promise<{ checks: { server: string } }>;
    expect((await readiness()).checks.server).toBe("ok");
    await shown("replicas", "drain", only.id, "--yes");
    expect(await shown("replicas")).toContain(`${only.id}  drained`);
    const response = await server.request("/readyz");
    expect({ status: response.status, server: (await readiness()).checks.server }).toEqual({
      ...{ status: 503, server: "draining" },
    });
    expect((await server.request("/v1/models")).status).toBe(200);
    await shown("replicas", "undrain", only.id);
    expect((await readiness()).checks.server).toBe("ok");
    expect((await headrace("replicas", "drain", "rep_0", "--yes")).stderr).toContain("There is no replica `rep_0`");
  });
});

describe("headrace audit", () => {
  test("shows who changed an account, what and from where", async () => {
    await shown("accounts", "set", "Web shop", "--tier", "free");
    const text = await shown("audit", "--target", account.id, "--action", "account.updated", "--limit", "1");
    expect(text).toContain(`account.updated  ${account.id}`);
    expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}/);
    expect(text).toMatch(/by key key_\S+ \S/);
    expect(text).toMatch(/tier: pro → free/);
    expect(await json("audit", "--account", "Web shop", "--limit", "2")).toHaveLength(2);
  });

  test("finds the events about an account by its name, and refuses an unknown target", async () => {
    const named = await json("audit", "--target", "web shop", "--limit", "1");
    expect(named).toMatchObject([{ target_id: account.id }]);
    const { code, stderr } = await headrace("audit", "--target", "Web shpo");
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("A target is an id") });
  });

  test("shows the changes of upstreams and replicas", async () => {
    for (const action of ["replica.updated", "upstream.created"]) {
      expect(await shown("audit", "--action", action, "--limit", "1")).toContain(action);
    }
  });
});

describe("filters of operators", () => {
  const none = "acct_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11";

  const commands = ["requests --all-accounts", "usage --all-accounts", "top --once"];
  test.each(commands)("of `%s` resolve the name of an account, and refuse an unknown name or id", async (line) => {
    const command = line.split(" ");
    expect(await headrace(...command, "--account", "web SHOP")).toMatchObject({ code: 0 });
    expect(await headrace(...command, "--account", "nonsense")).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: "error: There is no account `nonsense`. headrace accounts lists them.\n",
    });
    expect(await headrace(...command, "--account", none)).toMatchObject({ code: 1, stdout: "" });
  });

  test("refuse an unknown person, and the name of a key of any account", async () => {
    for (const command of ["requests", "usage"]) {
      const { code, stderr } = await headrace(command, "--all-accounts", "--person", "nobody@example.com");
      expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("No person has") });
    }
    const { code, stderr } = await headrace("requests", "--all-accounts", "--key", "Till");
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("headrace accounts keys") });
  });

  test("name --all-accounts only if a request was looked for in one account", async () => {
    const id = "req_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11";
    expect((await headrace("requests", "show", id)).stderr).toContain("with --all-accounts");
    const { code, stderr } = await headrace("requests", "show", id, "--all-accounts");
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no such request in any account"),
    });
  });
});

/** A reading and a changing command of each group that describes itself as one for operators. */
const operatorsCommands: readonly (readonly string[])[] = [
  ...[["accounts"], ["accounts", "create", "Books"], ["accounts", "suspend", "Web shop"]],
  ...[["people"], ["people", "reset-link", "ada@example.com"], ["organizations"], ["organizations", "create", "Org"]],
  ...[
    ["upstreams"],
    ["upstreams", "add", "other", "http://127.0.0.1:9/v1"],
    ["tiers", "set", "gold", "--requests-per-minute", "9"],
  ],
  ...[["replicas"], ["replicas", "drain", "rep_0", "--yes"], ["config", "show"], ["audit"], ["nodes"], ["export"]],
  ...[
    ["models", "remove", "m", "--yes"],
    ["usage", "--all-accounts"],
    ["requests", "--all-accounts"],
  ],
  ["top", "--all-accounts", "--once"],
];

test("refuses every command of operators to a key without admin:manage, and says how to get one", async () => {
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key };
  const outcomes = await Promise.all(operatorsCommands.map((command) => runCommand([...command], { env })));
  const refused = outcomes.map(({ code, stdout, stderr }, at) => ({
    command: operatorsCommands[at],
    answer: [code, stdout, stderr.includes("headrace operator-key") ? "says how" : stderr],
  }));
  expect(refused).toEqual(operatorsCommands.map((command) => ({ command, answer: [1, "", "says how"] })));
});
