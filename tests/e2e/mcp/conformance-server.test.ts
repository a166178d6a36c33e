// The protocol's conformance suite before the gateway as a server, for each revision, with a server of tools of either era behind it.
import { expect, test } from "bun:test";
import { startBearerProxy } from "../../support/mcp/bearer-proxy.ts";
import { runConformance } from "../../support/mcp/conformance.ts";
import { makeEverythingServer } from "../../support/mcp/everything-server.ts";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { TaskServers } from "../../support/mcp/task-server.ts";
import { startToolWorld } from "../../support/mcp/tool-world.ts";

const suites = {
  "2025-06-18": ["--spec-version", "2025-06-18", "--suite", "active"],
  "2025-11-25": ["--requirements", "2025-11-25"],
  "2026-07-28": ["--requirements", "2026-07-28"],
} as const;

/**
 * What a server of an earlier revision asks back has no key; its session begins with the capabilities that the gateway has, which
 * are not those of each client, and no roots.
 */
const laterBeforeEarlier = [
  "input-required-result-basic-elicitation:sep-2322-elicitation-incomplete",
  "input-required-result-basic-list-roots:sep-2322-list-roots-incomplete",
  "input-required-result-capability-check:sep-2322-respect-client-capabilities",
  "input-required-result-multi-round:sep-2322-multi-round-r2",
  "input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete",
  "server-stateless:sep-2575-missing-capability-http-400",
  "server-stateless:sep-2575-server-rejects-undeclared-capability",
];

test.each([
  { revision: "2025-06-18", behind: "legacy" },
  { revision: "2025-06-18", behind: "modern" },
  { revision: "2025-11-25", behind: "legacy" },
  { revision: "2025-11-25", behind: "modern" },
  { revision: "2026-07-28", behind: "legacy", but: laterBeforeEarlier },
  { revision: "2026-07-28", behind: "modern" },
] as const)("clients of $revision get what a server of the $behind era has", async ({ revision, behind, ...more }) => {
  await using everything = startMcpServer(makeEverythingServer, { eras: behind });
  await using world = await startToolWorld([{ name: "everything", url: everything.url }]);
  // No client says that it can sample: with chat:write the gateway would do so by its own models.
  await using proxy = startBearerProxy(world.at("everything"), await world.key());
  const { failed, checks } = await runConformance(["server", "--url", proxy.url, ...suites[revision]]);
  // Tasks are an extension since 2026-07-28, which the server behind does not have either.
  const own = failed.filter((failure) => !failure.startsWith("tasks-"));
  expect(own.map((failure) => failure.replace(/ .*/s, ""))).toEqual("but" in more ? [...more.but] : []);
  expect(checks.filter(({ status }) => status === "SUCCESS").length).toBeGreaterThan(50);
});

test("tasks of the extension are made, polled, answered and cancelled through the gateway", async () => {
  await using behind = startMcpServer(new TaskServers().make, { eras: "modern" });
  await using world = await startToolWorld([{ name: "tasks", url: behind.url }]);
  await using proxy = startBearerProxy(world.at("tasks"), await world.key());
  const names = [
    ...["lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input"],
    ...["request-headers", "dispatch-and-envelope", "required-task-error", "mrtr-composition"],
  ];
  const reports = await Promise.all(
    names.map((name) => runConformance(["server", "--url", proxy.url, "--scenario", `tasks-${name}`])),
  );
  expect(reports.flatMap(({ failed }) => failed)).toEqual([]);
  for (const { checks } of reports) expect(checks.map(({ status }) => status)).toContain("SUCCESS");
}, 60_000);
