// What clients and MCP servers say to each other in the middle of a call, through the gateway: progress, forms, cancellation.
import { afterAll, expect, test } from "bun:test";
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { leaveBrowser } from "../../support/chromium.ts";
import { until } from "../../support/headrace.ts";
import { type PeopleWorld, startPeopleWorld, type ToolPerson } from "../../support/mcp/people-world.ts";
import { startInspector } from "../../support/mcp/tool-clients.ts";

afterAll(leaveBrowser);

const answered = 'It was answered: {"action":"accept","content":{"response":"yes"}}';
const execution = { toolCallId: "1", messages: [], context: undefined };

/** Waits until the ledger says so of the last call. */
async function isCancelled({ model }: PeopleWorld, { handler }: ToolPerson, tool: string): Promise<void> {
  await until(async () => {
    await model.server.governance.ledger.flush();
    const { data } = (await handler.ask("/v1/requests")) as { data: { model: string; outcome: string }[] };
    return data.some((one) => one.model === tool && one.outcome === "cancelled");
  }, "the call is on the ledger as cancelled");
}

test.each([true, false])(
  "lets MCP servers of both eras elicit a form from the AI SDK (2026-07-28: %p)",
  async (isModern) => {
    await using world = await startPeopleWorld();
    await using ann = await world.join("ann", ["new", "old"]);
    const { url, model } = ann.place;
    const client = await createMCPClient({
      ...{ protocolVersionDiscovery: isModern, capabilities: { elicitation: {} } },
      transport: { type: "http", url, headers: { Authorization: `Bearer ${model.server.key}` } },
    });
    const asked: unknown[] = [];
    client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: { response: "yes" } };
    });
    const tools = await client.tools();
    for (const server of ["new", "old"]) {
      const result = await tools[`${server}_test_elicitation`]?.execute?.({ message: `Sure, ${server}?` }, execution);
      expect(result).toMatchObject({ content: [{ type: "text", text: answered }] });
    }
    expect(asked).toEqual(["Sure, new?", "Sure, old?"]);
    await client.close();
  },
);

test("cancels an AI SDK's call at its MCP server and books it as cancelled", async () => {
  await using world = await startPeopleWorld();
  await using ann = await world.join("ann", ["program"]);
  const { url, model } = ann.place;
  const headers = { Authorization: `Bearer ${model.server.key}` };
  const client = await createMCPClient({ transport: { type: "http", url, headers } });
  const abort = new AbortController();
  const options = { ...execution, abortSignal: abort.signal };
  const calling = Promise.resolve((await client.tools())["program_silence"]?.execute?.({}, options));
  await Bun.sleep(300);
  abort.abort();
  await expect(calling).rejects.toThrow("aborted");
  await isCancelled(world, ann, "program/silence");
  await client.close();
});

test("shows progress and forms of MCP servers of both eras in the inspector, and cancels", async () => {
  await using world = await startPeopleWorld();
  await using ann = await world.join("ann", ["new", "old", "program"]);
  const { page } = ann.visitor;
  const inspector = await startInspector(ann.place);
  try {
    await page.route(/fonts\.g/, (route) => route.abort());
    await page.goto(inspector.address);
    await page.waitForURL((now) => now.origin === world.model.server.url);
    await ann.allow();
    await page.locator('[data-testid="connection-status"][data-status="connected"]').waitFor({ state: "attached" });
    await page.getByText("Tools", { exact: true }).first().click();
    const execute = async (tool: string, fields: Readonly<Record<string, string>> = {}) => {
      await page.getByRole("button", { name: tool, exact: true }).click();
      for (const [name, value] of Object.entries(fields)) await page.getByLabel(name).first().fill(value);
      await page.getByRole("button", { name: "Execute Tool" }).click();
    };
    for (const server of ["new", "old"]) {
      // It is shown for a few seconds only, and that of the server before must be gone.
      await page.getByText("100 of 100").waitFor({ state: "detached" });
      const isShown = page.getByText("100 of 100").waitFor();
      await Promise.all([isShown, execute(`${server}_test_tool_with_progress`)]);
      await execute(`${server}_test_elicitation`, { message: `Sure, ${server}?` });
      await page.getByText(`Sure, ${server}?`).waitFor();
      await page.getByLabel("response").first().fill("yes");
      await page.getByRole("button", { name: "Submit", exact: true }).click();
      await page.getByText(answered).waitFor();
    }
    await execute("program_silence");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await isCancelled(world, ann, "program/silence");
  } finally {
    await inspector.stop();
  }
});
