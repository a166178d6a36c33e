// The protocol's conformance suite before the gateway as a server, for each revision, with an MCP server of either era behind it, beside it or at a node.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startBearerProxy } from "../../support/mcp/bearer-proxy.ts";
import { type Report, runConformance } from "../../support/mcp/conformance.ts";
import { makeEverythingServer } from "../../support/mcp/everything-server.ts";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { TaskServers } from "../../support/mcp/task-server.ts";
import { toolsYaml } from "../../support/mcp/tool-world.ts";
import { joinNode, startGateway } from "../../support/nodes.ts";

const suites = {
  "2025-06-18": ["--spec-version", "2025-06-18", "--suite", "active"],
  "2025-11-25": ["--requirements", "2025-11-25"],
  "2026-07-28": ["--requirements", "2026-07-28"],
} as const;

/** What cannot be of a server of an earlier revision, with the reason. */
const laterBeforeEarlier = [
  // What it asks has no key of its own; the suite looks for the one that its later server has.
  "input-required-result-basic-elicitation:sep-2322-elicitation-incomplete",
  // A session is not told of roots: they are directories of the client's machine, and servers take them for their own.
  "input-required-result-basic-list-roots:sep-2322-list-roots-incomplete",
  "input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete",
  // What it may ask for it is told once, for all clients of its session.
  "input-required-result-capability-check:sep-2322-respect-client-capabilities",
];

const runs = (["at the gateway", "at a node"] as const).flatMap((place) =>
  (["2025-06-18", "2025-11-25", "2026-07-28"] as const).flatMap((revision) =>
    (["legacy", "modern"] as const).map((behind) => {
      const name = `${behind}-${revision}-${place.slice(-4)}`.replaceAll(/[^a-z0-9-]/g, "");
      const but: string[] = revision === "2026-07-28" && behind === "legacy" ? laterBeforeEarlier : [];
      return { place, revision, behind, name, but };
    }),
  ),
);

const ofTasks = [
  ...["lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input"],
  ...["request-headers", "dispatch-and-envelope", "required-task-error", "mrtr-composition"],
];

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** So many at a time: they wait for most of it. */
const atOnce = 4;
const reports = new Map<string, Promise<Report>>();
let addressOf: (name: string) => string;

/** Scenarios that give an answer half a second may miss it beside others: what fails is asked once more by itself. */
async function byItself(name: string, revision: string, failed: readonly string[]): Promise<string[]> {
  if (failed.length === 0) return [];
  await Promise.allSettled(reports.values());
  const scenarios = new Set(failed.map((failure) => failure.replace(/:.*/s, "")));
  const again: string[] = [];
  for (const one of scenarios) {
    const args = ["--scenario", one, "--spec-version", revision];
    again.push(...(await runConformance(["server", "--url", addressOf(name), ...args])).failed);
  }
  return again;
}

/** Starts all that is there, and begins. */
beforeAll(async () => {
  // Each has a server of its own: what one has its server tell, the others would hear.
  const urls = new Map<string, string>();
  for (const { name, behind } of runs) {
    urls.set(name, stack.use(startMcpServer(makeEverythingServer, { eras: behind })).url);
  }
  urls.set("tasks", stack.use(startMcpServer(new TaskServers().make, { eras: "modern" })).url);
  const atNode = runs.filter(({ place }) => place === "at a node").map(({ name }) => name);
  const entries = [...urls].map(([name, url]) =>
    atNode.includes(name) ? { name, node: { node: "gpu-1", server: name } } : { name, url },
  );
  const gateway = stack.use(await startGateway({ yaml: toolsYaml(entries) }));
  const own = atNode.map((name) => ({ name, url: urls.get(name), share: true }));
  stack.use(await joinNode(gateway, { demo: true, models: ["*"], yaml: toolsYaml(own) }));
  // No client says that it can sample: with chat:write the gateway would do so by its own models.
  const made = await gateway.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } });
  const { key } = (await made.json()) as { key: string };
  addressOf = (name) => stack.use(startBearerProxy(`${gateway.url}/mcp/${name}`, key)).url;
  const begin = (what: string, name: string, args: readonly string[]) => {
    const before = [...reports.values()].at(-atOnce);
    const isTurn = reports.size < atOnce ? undefined : before?.catch(() => {});
    const work = async () => {
      await isTurn;
      return await runConformance(["server", "--url", addressOf(name), ...args]);
    };
    reports.set(what, work());
  };
  for (const { name, revision } of runs) begin(name, name, suites[revision]);
  for (const one of ofTasks) begin(`tasks-${one}`, "tasks", ["--scenario", `tasks-${one}`]);
}, 60_000);

test.each(runs)("gives clients of $revision the features of a server of the $behind era $place", async (one) => {
  const { name, revision, but } = one;
  const { failed = [], checks = [] } = (await reports.get(name)) ?? {};
  const checkOf = (failure: string) => failure.replace(/ .*/s, "");
  // Tasks are an extension since 2026-07-28, which the server behind does not have either.
  const own = failed.filter((failure) => !failure.startsWith("tasks-"));
  const isOther = (failure: string) => !but.includes(checkOf(failure));
  const again = await byItself(name, revision, own.filter(isOther));
  expect(again.filter(isOther)).toEqual([]);
  expect(own.map(checkOf)).toEqual(expect.arrayContaining(but));
  expect(checks.filter(({ status }) => status === "SUCCESS").length).toBeGreaterThan(50);
});

test.each(ofTasks)("passes tasks of the extension through the gateway: %s", async (one) => {
  const { failed, checks = [] } = (await reports.get(`tasks-${one}`)) ?? {};
  expect(failed).toEqual([]);
  expect(checks.map(({ status }) => status)).toContain("SUCCESS");
});
