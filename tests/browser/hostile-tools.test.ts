// In a real browser: whatever an MCP server says is text on every page, fits into it, and hides nothing from who reads it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { answered, type HostileServer, startHostileServer } from "../support/mcp/hostile-server.ts";
import { toolsYaml } from "../support/mcp/tool-world.ts";
import { look } from "../support/page-checks.ts";

const turned = "\u202E";
const markup = `"'><img src=x onerror=window.pwned=1><script>window.pwned=1</script>[here](javascript:window.pwned=1)`;
const long = `${markup} https://e${turned}vil.example/x ${turned}txet\u200B `.repeat(90).slice(0, 10_000);
const longName = `the_longest_${"name".repeat(50)}`;
const error = { code: -32_000, message: `${markup} ${"x".repeat(100_000)}` };
const inputSchema = {
  type: "object",
  properties: {
    constructor: { type: "string", description: long },
    [`${turned}${"argument".repeat(20)}`]: { type: "string" },
  },
};

const lists: Readonly<Record<string, object>> = {
  "tools/list": {
    tools: [
      { name: longName, title: `${turned}${markup}`, description: long, inputSchema },
      { name: "filled\u3164in", description: "Has a name with a blank that is a letter.", inputSchema },
      ...Array.from({ length: 200 }, (_, at) => ({ name: `tool_${at}`, inputSchema: { type: "object" } })),
    ],
  },
  "prompts/list": { prompts: [{ name: "tool_1", description: long }] },
  "resources/list": { resources: [{ uri: `file:///${turned}${"deep/".repeat(60)}`, name: markup, description: long }] },
  "resources/templates/list": { resourceTemplates: [] },
  "tools/call": { content: [{ type: "text", text: long }], structuredContent: { markup }, isError: true },
};

let world: DashboardWorld;
let hostile: HostileServer;

beforeAll(async () => {
  hostile = startHostileServer(({ id, method, params }) => {
    if (method === "tools/call" && params["name"] === "tool_0") return Response.json({ jsonrpc: "2.0", id, error });
    if (method !== "initialize") return lists[method] && answered(id, lists[method]);
    return answered(id, {
      ...{ protocolVersion: params["protocolVersion"], capabilities: { tools: {}, prompts: {}, resources: {} } },
      serverInfo: { name: markup, title: `${turned}${markup}`, version: "1.0".repeat(60) },
      instructions: long,
    });
  });
  const yaml = toolsYaml([
    { name: "open", url: hostile.url, approval: "all" },
    { name: "each", url: hostile.url, approval: "each" },
  ]);
  world = await openDashboardWorld({ yaml });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await hostile[Symbol.asyncDispose]();
});

async function arrive(path: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size: desktop });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const drawer = (page: Page) => page.getByRole("dialog").last();

/** Nothing of it ran, loaded, or became an element; what is seen turns no text around. */
async function expectText({ page, trouble }: Visitor): Promise<void> {
  const found = await page.evaluate(() => ({
    ran: (globalThis as { pwned?: unknown }).pwned ?? null,
    elements: document.querySelectorAll("img[src='x'], [onerror], a[href^='javascript']").length,
    turns: document.querySelector("main")?.textContent?.includes("\u202E"),
  }));
  expect(found).toEqual({ ran: null, elements: 0, turns: false });
  expect(trouble).toEqual([]);
}

test("renders a hostile tool as fitting text, whatever its argument names", async () => {
  await using visitor = await arrive("/tools");
  const { page } = visitor;
  const offered = page.getByRole("region", { name: "open" });
  await offered.getByText("202 tools, 1 prompt, 1 resource").waitFor();
  await look(visitor, "hostile-tools");
  await expectText(visitor);
  await offered.getByRole("button", { name: /^the_longest_/ }).click();
  await drawer(page).getByRole("button", { name: "Call tool" }).waitFor();
  const said = drawer(page).locator("section", { hasText: "Description" });
  expect(await said.textContent()).toContain("https://eU+202Evil.example/x");
  await look(visitor, "hostile-tool");
  const first = drawer(page).getByRole("textbox", { name: "constructor" });
  expect(await first.getAttribute("aria-invalid")).not.toBe("true");
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  await drawer(page).getByText("The tool reported a failure.").waitFor();
  await look(visitor, "hostile-result");
  await visitor.go("/tools?tool=open_tool_0");
  await drawer(page).getByRole("button", { name: "Call tool" }).click();
  const failure = drawer(page).getByRole("alert");
  await failure.getByText("onerror=window.pwned=1").waitFor();
  expect((await failure.textContent())?.length).toBeLessThan(3_000);
  await look(visitor, "hostile-error");
  await expectText(visitor);
});

test("names invisible characters in tool names and hosts to operators, and marks texts that reach models", async () => {
  await using visitor = await arrive("/admin/tool-servers?server=each");
  const { page } = visitor;
  await drawer(page)
    .getByRole("button", { name: /^(Load tools|Refresh)$/ })
    .click();
  await drawer(page).getByRole("heading", { name: "To approve" }).waitFor();
  await drawer(page).getByRole("heading", { name: "Server instructions" }).waitFor();
  const filled = drawer(page).getByRole("listitem").filter({ hasText: "a blank that is a letter" });
  await filled.getByRole("heading", { name: "filledU+3164in" }).waitFor();
  await filled.getByText("invisible characters (name, input schema)").waitFor();
  await drawer(page).getByText("The text contains addresses at eU+202Evil.example.").first().waitFor();
  expect(await drawer(page).textContent()).not.toContain(turned);
  await drawer(page).getByRole("button", { name: "Test", exact: true }).click();
  await drawer(page).getByText("It works: 202 tools").waitFor();
  await look(visitor, "hostile-server");
  await expectText(visitor);
});
