// In a real browser: people see which tools they may use, read and try them, and are told how clients get them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import type { Page } from "playwright-core";
import { z } from "zod";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { completed, mcpServerFor, principalOf, toolUseFor } from "../support/tool-uses.ts";

let world: DashboardWorld;

/** What the tool `report` was called with. */
const reports: unknown[] = [];

const gauges = serving(() => {
  const server = new McpServer({ name: "gauges", version: "1" });
  server.registerTool(
    "level",
    {
      title: "Level of a river",
      description: "Gives the level at a station, in metres.\n\n<b>Not</b> a forecast.",
      inputSchema: z.object({
        station: z.string().describe("Its name, as the list has it"),
        days: z.number().int().optional().describe("How many days back"),
        unit: z.enum(["metres", "feet"]).optional(),
        raw: z.boolean().optional(),
      }),
      outputSchema: z.object({ level: z.number() }),
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    ({ station, days = 1, unit = "metres", raw = false }) => ({
      content: [{ type: "text", text: `${station}: 2.5 ${unit} over ${days} days, ${raw ? "raw" : "smoothed"}` }],
      structuredContent: { level: 2.5 },
    }),
  );
  server.registerTool(
    "stop",
    { description: "Stops a gauge.", inputSchema: z.object({}), annotations: { destructiveHint: true } },
    () => ({ content: [{ type: "text", text: "The gauge is locked." }], isError: true }),
  );
  server.registerPrompt("summary", { description: "Sums a week up." }, () => ({ messages: [] }));
  server.registerResource("stations", "file:///stations.csv", {}, () => ({ contents: [] }));
  return server;
});

const mail = serving(() => {
  const server = new McpServer({ name: "mail", version: "1" });
  const inputSchema = z.object({ to: z.array(z.string()), priority: z.number() });
  server.registerTool("report", { inputSchema }, (given) => {
    reports.push(given);
    return { content: [] };
  });
  return server;
});

function serving(make: () => McpServer) {
  const handler = createMcpHandler(make);
  return Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) });
}

beforeAll(async () => {
  const yaml = `
tools:
  record: content
  servers:
    - { name: gauges, url: "http://127.0.0.1:${gauges.port}/mcp" }
    - { name: mail, url: "http://127.0.0.1:${mail.port}/mcp" }
`;
  world = await openDashboardWorld({ yaml });
  await world.fill({ keys: 2, requests: 50, chats: 2, events: 5 });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await Promise.all([gauges.stop(true), mail.stop(true)]);
});

async function arrive(path: string, email?: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size: desktop });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const drawer = (page: Page) => page.getByRole("dialog").last();

test("lists usable tools by server, with search, also for members", async () => {
  await using visitor = await arrive("/tools", colleagues.member.email);
  const { page } = visitor;
  const shown = page.getByRole("region", { name: "gauges" });
  await shown.getByText("2 tools, 1 prompt, 1 resource").waitFor();
  await shown.getByText("Read-only").waitFor();
  await shown.getByText("file:///stations.csv").waitFor();
  await page.getByRole("region", { name: "mail" }).getByText("No description").waitFor();
  await look(visitor, "tools");
  await page.getByRole("searchbox", { name: "Search tools" }).fill("river level");
  await page.getByRole("region", { name: "mail" }).waitFor({ state: "detached" });
  expect(await shown.getByRole("button", { name: "level", exact: true }).isVisible()).toBe(true);
  expect(await shown.getByRole("button", { name: "stop", exact: true }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("calls a tool by a form of its schema, and shows the raw result", async () => {
  await using visitor = await arrive("/tools?tool=gauges_level");
  const { page } = visitor;
  await drawer(page).getByText("<b>Not</b> a forecast.").waitFor();
  await look(visitor, "tool");
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("This argument is required.").waitFor();
  await drawer(page).getByRole("textbox", { name: "station" }).fill("Passau");
  await drawer(page).getByRole("textbox", { name: "days" }).fill("2.5");
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("Enter a whole number.").waitFor();
  await drawer(page).getByRole("textbox", { name: "days" }).fill("3");
  await drawer(page).getByRole("combobox", { name: "unit" }).selectOption("feet");
  await drawer(page).getByRole("switch", { name: "raw" }).check();
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("Passau: 2.5 feet over 3 days, raw").waitFor();
  await drawer(page).getByLabel("Structured result").waitFor();
  await look(visitor, "tool-result");
  await drawer(page).getByRole("button", { name: "Schemas" }).click();
  await drawer(page).getByText('"How many days back"').waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("enters lists as JSON, and marks an empty result and a failed tool", async () => {
  await using visitor = await arrive("/tools?tool=mail_report");
  const { page } = visitor;
  const to = drawer(page).getByRole("textbox", { name: "to" });
  await to.fill("grace@example.test");
  await drawer(page).getByRole("textbox", { name: "priority" }).fill("1.5");
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("This is not valid JSON").waitFor();
  await to.fill('["grace@example.test"]');
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("The result is empty.").waitFor();
  expect(reports).toEqual([{ to: ["grace@example.test"], priority: 1.5 }]);
  await visitor.go("/tools?tool=gauges_stop");
  await drawer(page).getByText("This tool takes no arguments.").waitFor();
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("The tool reported a failure.").waitFor();
  await drawer(page).getByText("The gauge is locked.").waitFor();
  await look(visitor, "tool-failed");
  expect(visitor.trouble).toEqual([]);
});

test("reports a broken tool answer with where to look, and keeps the input", async () => {
  await using visitor = await arrive("/tools?tool=gauges_level");
  const { page } = visitor;
  await drawer(page).getByRole("textbox", { name: "station" }).fill("Passau");
  await page.route("**/mcp?*", (route) =>
    route.fulfill({ contentType: "text/event-stream", body: 'data: {"jsonrpc": "2.0", "res\n\n' }),
  );
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  const failure = drawer(page).getByRole("alert");
  await failure.getByText("The answer was cut off").waitFor();
  expect(await failure.textContent()).not.toContain("Request");
  expect(await drawer(page).getByRole("textbox", { name: "station" }).inputValue()).toBe("Passau");
  expect(visitor.trouble).toEqual([]);
});

test("shows the MCP address of all servers or of one", async () => {
  await using visitor = await arrive("/tools");
  const { page } = visitor;
  await visitor.press("Connect a client");
  await drawer(page).getByText(`${world.server.url}/mcp`, { exact: true }).waitFor();
  await look(visitor, "tools-connect");
  await drawer(page).getByRole("combobox", { name: "Servers" }).selectOption("gauges");
  await drawer(page).getByText(`${world.server.url}/mcp/gauges`, { exact: true }).waitFor();
  for (const client of ["Claude Code", "Codex", "opencode", "Inspector", "AI SDK"]) {
    await drawer(page).getByRole("tab", { name: client }).click();
    await drawer(page).getByLabel(`Copy for ${client}`).first().waitFor();
    expect(await drawer(page).getByLabel(`Copy for ${client}`).first().textContent()).toContain("/mcp/gauges");
  }
  expect(visitor.trouble).toEqual([]);
});

test("logs a tool call as such, without tokens, with stored content if kept", async () => {
  const principal = await principalOf(world.server, world.server.key);
  const server = mcpServerFor({ name: "gauges", nanoUsdPerCall: 2_000_000 });
  const use = toolUseFor(principal, { server, name: "level", content: () => '{"station":"Passau"}' });
  await (await world.server.tools.toolUses.begin(use)).ended({ ...completed, content: () => '{"content":["2.5"]}' });
  await until(
    async () => (await world.browser.ask(`/v1/requests/${use.requestId}`))["tool_content"] !== null,
    "what was said is kept",
  );
  await using visitor = await arrive("/requests?model=gauges%2Flevel");
  const { page } = visitor;
  const row = page.locator("tbody tr:has(a)").first();
  await row.getByText("Tool call").waitFor();
  expect(await row.getByText("No tokens").count()).toBe(1);
  await look(visitor, "logs-tool");
  await visitor.go(`/requests/${use.requestId}`);
  await drawer(page).getByText("Result bytes").waitFor();
  expect(await drawer(page).getByLabel("Arguments").textContent()).toContain('"station": "Passau"');
  expect(await drawer(page).getByLabel("Result").textContent()).toContain("2.5");
  expect(await drawer(page).getByText("Total tokens").count()).toBe(0);
  await look(visitor, "log-of-a-tool");
  expect(visitor.trouble).toEqual([]);
});
