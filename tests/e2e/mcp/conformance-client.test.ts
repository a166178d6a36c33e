// The protocol's conformance suite behind the gateway as a client: a client asks through it, and the suite's server judges what comes.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { runConformance } from "../../support/mcp/conformance.ts";
import { type DriverAsks, type DriverIsTold, driverVariable } from "../../support/mcp/conformance-driver.ts";
import { type ServerEntry, startToolWorld, type ToolWorld, toolsYaml } from "../../support/mcp/tool-world.ts";

let world: ToolWorld;
let control: ReturnType<typeof Bun.serve>;

/** Puts the suite's server of a scenario behind the gateway; one after the other, as each is a change of the configuration. */
beforeAll(async () => {
  world = await startToolWorld([]);
  const key = await world.key();
  const servers = new Map<string, ServerEntry>();
  let [count, last] = [0, Promise.resolve()];
  control = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { url } = (await request.json()) as DriverAsks;
      const name = `s${count++}`;
      if (request.method === "DELETE") servers.delete(url);
      else servers.set(url, { name, url });
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
  await world[Symbol.asyncDispose]();
});

const driver = fileURLToPath(new URL("../../support/mcp/conformance-driver.ts", import.meta.url));

/**
 * All but sse-retry, whose server does not end while the gateway is still connected to it. Those that judge how an account is connected by OAuth are
 * not driven by a key: tests of connections are about them.
 */
test.each([
  ["2025-06-18", ["initialize", "tools_call"]],
  [
    "2025-11-25",
    ["sse-retry"],
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
    const environment = { [driverVariable]: control.url.href };
    const failed: string[] = [];
    for (const scenario of scenarios) {
      const args = [
        "client",
        "--command",
        `${process.execPath} ${driver}`,
        "--scenario",
        scenario,
        "--spec-version",
        revision,
      ];
      const report = await runConformance(args, { environment });
      failed.push(...report.failed);
      if (report.exitCode !== 0) failed.push(`${scenario}: exit ${report.exitCode} ${report.text.slice(-2_000)}`);
      expect(report.checks).not.toBeEmpty();
    }
    expect(failed).toEqual([]);
  },
  60_000,
);
