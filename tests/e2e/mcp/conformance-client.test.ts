// The protocol's conformance suite behind the gateway as a client: a client asks through it, and the suite's server judges what comes.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { runConformance } from "../../support/mcp/conformance.ts";
import { type DriverAsks, type DriverTarget, driverVariable } from "../../support/mcp/conformance-driver.ts";
import { type ServerEntry, startToolWorld, type ToolWorld, toolsYaml } from "../../support/mcp/tool-world.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../../support/server-people.ts";

let world: ToolWorld;
let people: ServerPeople;
let anna: SignedInMember;
let key: string;
let control: ReturnType<typeof Bun.serve>;
const servers = new Map<string, ServerEntry>();
let [count, last] = [0, Promise.resolve()];

/** Puts the suite's server of a scenario behind the gateway; one after the other, as each is a change of the configuration. */
beforeAll(async () => {
  world = await startToolWorld([]);
  people = openServerPeople(world.server);
  control = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const asks = (await request.json()) as DriverAsks;
      if (request.method === "PUT") return await connect(servers.get(asks.url)?.name ?? "");
      const name = `s${count++}`;
      if (request.method === "DELETE") servers.delete(asks.url);
      else servers.set(asks.url, { name, ...asks });
      const yaml = toolsYaml([...servers.values()]);
      last = last.then(() => world.server.reconfigure(yaml));
      await last;
      const reported: DriverTarget = { url: world.at(name), headers: { authorization: `Bearer ${key}` } };
      return Response.json(reported);
    },
  });
});

/** Another one each time: a person may only begin so often. */
beforeEach(async () => {
  anna = await people.addMember("member");
  const response = await fetch(`${world.server.url}/v1/keys`, {
    method: "POST",
    headers: { ...anna.headers, "content-type": "application/json" },
    body: JSON.stringify({ name: "Anna's", scopes: ["tools:use"] }),
  });
  ({ key } = (await response.json()) as { key: string });
});

afterAll(async () => {
  await control.stop(true);
  await people.close();
  await world[Symbol.asyncDispose]();
});

/** Anna's browser goes to the authorization server, and back with what it says. */
async function connect(server: string): Promise<Response> {
  const begun = await fetch(`${world.server.url}/v1/tools/connections`, {
    method: "POST",
    headers: { ...anna.headers, "content-type": "application/json" },
    body: JSON.stringify({ server }),
  });
  if (!begun.ok) return begun;
  const { url } = (await begun.json()) as { url: string };
  const there = await fetch(url, { redirect: "manual" });
  return await fetch(there.headers.get("location") ?? "", { headers: anna.reading, redirect: "manual" });
}

const driver = fileURLToPath(new URL("../../support/mcp/conformance-driver.ts", import.meta.url));

const drive = (args: readonly string[]) =>
  runConformance(["client", "--command", `${process.execPath} ${driver}`, ...args], {
    environment: { [driverVariable]: control.url.href },
  });

const accounts = [
  ...["metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "pre-registration"],
  ...["scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"],
  ...["scope-step-up", "scope-retry-limit"],
].map((name) => `auth/${name}`);
const clients = ["auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none"];
/** It wants the address of the suite's own document in the place of ours, which no gateway without https and a name has. */
const byDocument = ["auth/basic-cimd"];

interface Suite {
  revision: string;
  suite: string;
  passes: string[];
  but?: string[];
}

/**
 * The extensions are left out: in them a program is signed in without a person (client credentials, enterprise-managed
 * authorization, workload identities), tokens are bound to keys (DPoP), or skills are loaded, which the gateway passes through.
 */
test.each<Suite>([
  // A server that says nothing of how it authorizes is not connected: where secrets go would be a guess.
  {
    revision: "2025-03-26",
    suite: "backcompat",
    passes: ["auth/2025-03-26-oauth-metadata-backcompat"],
    but: ["auth/2025-03-26-oauth-endpoint-fallback"],
  },
  { revision: "2025-06-18", suite: "core", passes: ["initialize", "tools_call", ...clients] },
  {
    revision: "2025-11-25",
    suite: "core",
    passes: [
      ...["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"],
      ...[...accounts, ...clients],
    ],
    but: byDocument,
  },
  { revision: "2026-07-28", suite: "core", passes: ["tools_call", ...accounts, ...clients], but: byDocument },
  {
    revision: "2026-07-28",
    suite: "draft",
    passes: [
      ...["auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported"],
      ...["auth/authorization-server-migration", "auth/metadata-issuer-mismatch"],
      ...["auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing"],
      ...["auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized"],
      ...["request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers"],
      ...["http-invalid-tool-headers", "json-schema-ref-no-deref"],
    ],
  },
])(
  "passes the MCP conformance suite $suite of $revision",
  async ({ revision, suite, passes, but = [] }) => {
    const { text, exitCode } = await drive(["--suite", suite, "--spec-version", revision]);
    const of = (sign: string) => [...text.matchAll(new RegExp(`^${sign} (\\S+):`, "gm"))].map(([, name]) => name);
    expect({ not: of("✗"), text: of("✗").length > but.length ? text.slice(0, 20_000) : "" }).toEqual({
      not: but,
      text: "",
    });
    expect(of("✓").sort()).toEqual([...passes].sort());
    expect(exitCode).toBe(Math.min(but.length, 1));
  },
  60_000,
);

test.each(["2025-11-25", "2026-07-28"])("passes schemas of %s unchanged", async (revision) => {
  const scenario = "json-schema-2020-12-preservation";
  const { failed, checks, exitCode } = await drive(["--scenario", scenario, "--spec-version", revision]);
  expect({ failed, exitCode }).toEqual({ failed: [], exitCode: 0 });
  expect(checks).not.toBeEmpty();
});
