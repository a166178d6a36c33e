// The protocol's conformance suite behind the gateway as a client: a client asks through it, and the suite's server judges what comes.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { type Report, runConformance } from "../../support/mcp/conformance.ts";
import { type DriverAsks, type DriverIsTold, driverVariable } from "../../support/mcp/conformance-driver.ts";
import { type ServerEntry, startToolWorld, type ToolWorld, toolsYaml } from "../../support/mcp/tool-world.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../../support/server-people.ts";

let world: ToolWorld;
let people: ServerPeople;
let anna: SignedInMember;
let control: ReturnType<typeof Bun.serve>;
const servers = new Map<string, ServerEntry>();
let [count, last] = [0, Promise.resolve()];

/** Puts the suite's server of a scenario behind the gateway; one after the other, as each is a change of the configuration. */
beforeAll(async () => {
  world = await startToolWorld([]);
  people = openServerPeople(world.server);
  anna = await people.addMember("member");
  const response = await fetch(`${world.server.url}/v1/keys`, {
    method: "POST",
    headers: { ...anna.headers, "content-type": "application/json" },
    body: JSON.stringify({ name: "Anna's", scopes: ["tools:use"] }),
  });
  const { key } = (await response.json()) as { key: string };
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
      const told: DriverIsTold = { url: world.at(name), headers: { authorization: `Bearer ${key}` } };
      return Response.json(told);
    },
  });
});

afterAll(async () => {
  await control.stop(true);
  await people.close();
  await world[Symbol.asyncDispose]();
});

/** As Anna's browser would: to the authorization server, and back with what it says. */
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

async function run(revision: string, scenario: string): Promise<Report> {
  const command = `${process.execPath} ${driver}`;
  const args = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision];
  const report = await runConformance(args, { environment: { [driverVariable]: control.url.href } });
  expect(report.checks).not.toBeEmpty();
  return report;
}

test.each([
  ["2025-06-18", ["initialize", "tools_call"]],
  [
    "2025-11-25",
    [
      "initialize",
      "tools_call",
      "elicitation-sep1034-client-defaults",
      "json-schema-2020-12-preservation",
      "sse-retry",
    ],
  ],
  [
    "2026-07-28",
    [
      ...["tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers"],
      ...[
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
      ],
    ],
  ],
] as const)(
  "%s",
  async (revision, scenarios) => {
    const failed: string[] = [];
    for (const scenario of scenarios) {
      const report = await run(revision, scenario);
      failed.push(...report.failed);
      if (report.exitCode !== 0) failed.push(`${scenario}: exit ${report.exitCode} ${report.text.slice(-2_000)}`);
    }
    expect(failed).toEqual([]);
  },
  60_000,
);

const ofAccounts = [
  ...["metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "pre-registration"],
  ...["scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"],
  ...["scope-step-up", "scope-retry-limit"],
  ...["token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"],
];
test("zz", async () => {
  for (const s of [...ofAccounts])
    for (const rev of ["2025-11-25"]) {
      const t = Date.now();
      const r = await run(rev, `auth/${s}`);
      console.log(
        rev,
        s,
        r.exitCode,
        r.failed,
        r.checks.filter((c) => c.status === "WARNING").map((c) => c.id),
        Date.now() - t,
        r.exitCode ? r.text.slice(-1500) : "",
      );
    }
}, 100_000);
