// In a real browser: who may use which tools is said in forms, a person chooses for an app, and connects their own account at a server.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { McpServer } from "@modelcontextprotocol/server";
import type { Locator, Page } from "playwright-core";
import { startCallback, type TestApp, testApp } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { type AskingServer, accountsThere, startAskingServer } from "../support/mcp/asking-server.ts";
import { type McpFixture, startMcpServer } from "../support/mcp/mcp-server.ts";
import { toolsYaml } from "../support/mcp/tool-world.ts";
import { look } from "../support/page-checks.ts";
import { unfold } from "../support/unfold.ts";

let world: DashboardWorld;
let notes: AskingServer;
let crm: McpFixture;
let app: TestApp;
let callback: ReturnType<typeof startCallback>;

beforeAll(async () => {
  notes = startAskingServer();
  crm = startMcpServer(() => {
    const server = new McpServer({ name: "crm", version: "1" });
    for (const tool of ["search", "write"]) server.registerTool(tool, {}, () => ({ content: [] }));
    return server;
  });
  const yaml = toolsYaml([
    { name: "crm", title: "Customers", url: crm.url },
    { name: "notes", title: "Notebook", url: notes.url, oauth: {} },
  ]);
  world = await openDashboardWorld({ yaml });
  await world.fill({ keys: 2, requests: 10, chats: 1, events: 2 });
  callback = startCallback();
  const settings = { name: "Desk", redirect_uris: [callback.loopbackUri] };
  app = await testApp(world.server, { ...settings, scopes: ["chat:write", "tools:use"] });
});

afterAll(async () => {
  leaveBrowser();
  await callback.stop();
  await world[Symbol.asyncDispose]();
  await Promise.all([notes[Symbol.asyncDispose](), crm[Symbol.asyncDispose]()]);
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const others = [...callback.hosts, new URL(notes.origin).host];
  const visitor = await openVisitor({ at: world.server.url, size, others });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const dialog = (page: Page) => page.getByRole("dialog").last();
const waitForText = ({ page }: Visitor, text: string) => page.getByText(text).first().waitFor();
const account = (visitor: Visitor) =>
  visitor.page.getByRole("list", { name: "Your connected accounts" }).getByRole("listitem");

const writeList = (page: Page, ...entries: string[]) => writeListIn(dialog(page), ...entries);

async function writeListIn(part: Locator, ...entries: string[]): Promise<void> {
  await part.getByLabel("Tools", { exact: true }).selectOption({ label: "Selected tools" });
  const field = part.getByLabel("Tools, selected");
  for (const entry of entries) {
    await field.fill(entry);
    await field.press("Enter");
  }
}

test("connects a person's own account, shows it, explains a failure, reconnects and disconnects it", async () => {
  await using katherine = await arrive("/tools?account=notes", colleagues.member.email, phone);
  const { page } = katherine;
  await waitForText(katherine, "A program asks for your account at Notebook");
  await account(katherine).getByText("Not connected").waitFor();
  await look(katherine, "tools-account-none");
  // The authorization server shows nothing: the browser stays, and it is tried again.
  await page.route(`${notes.origin}/**`, (route) => route.fulfill({ status: 204 }), { times: 1 });
  const left = page.waitForResponse((response) => response.status() === 204);
  await katherine.press("Connect your account: Notebook");
  await left;
  await katherine.press("Connect your account: Notebook");
  await page.getByRole("link", { name: `Continue as ${accountsThere[0]}` }).click();
  await page.getByRole("heading", { name: "Your account is connected" }).waitFor();
  await page.getByRole("link", { name: "Back to the tools" }).click();
  await account(katherine).getByText("Connected", { exact: true }).waitFor();
  await page.getByRole("region", { name: "notes" }).getByText("whoami").first().waitFor();
  await look(katherine, "tools-account-connected");

  notes.expire(true);
  await page.getByRole("button", { name: "whoami" }).click();
  await katherine.press("Call tool");
  await waitForText(katherine, "connect your account there");
  await katherine.go("/tools");
  await account(katherine).getByText("Not working").waitFor();
  await look(katherine, "tools-account-broken");
  await katherine.press("Connect again: Notebook");
  await page.getByRole("link", { name: `Continue as ${accountsThere[1]}` }).click();
  await page.getByRole("link", { name: "Back to the tools" }).click();
  await account(katherine).getByText("Connected", { exact: true }).waitFor();

  // What may not be used any more is hers to end all the same.
  const { data } = (await world.browser.ask("/v1/members")) as { data: { id: string; email: string }[] };
  const member = `/v1/members/${data.find(({ email }) => email === colleagues.member.email)?.id}`;
  await world.browser.ask(member, { method: "PATCH", body: { tools: [] } });
  await katherine.go("/tools");
  await account(katherine).getByText("Not used", { exact: true }).waitFor();
  await waitForText(katherine, "No tools available yet");
  expect(await page.getByRole("button", { name: /^Connect again/ }).count()).toBe(0);
  await look(katherine, "tools-account-unused");
  await world.browser.ask(member, { method: "PATCH", body: { tools: null } });
  await katherine.go("/tools");
  await katherine.press("Disconnect Notebook");
  await waitForText(katherine, "Disconnect Notebook?");
  await katherine.press("Disconnect");
  await account(katherine).getByText("Not connected").waitFor();
});

test("lets a person choose the servers for an app, see the choice, and change it", async () => {
  await using katherine = await arrive(app.authorize({ scope: "chat:write tools:use" }), colleagues.member.email);
  const { page } = katherine;
  const boxes = page.getByRole("checkbox");
  await page.getByRole("radio", { name: /Every server/ }).waitFor();
  expect(await boxes.first().isVisible()).toBe(false);
  await look(katherine, "consent-tools-all", { referrerPolicy: "no-referrer" });
  await page.getByRole("radio", { name: "Selected servers" }).check();
  await katherine.press("Allow");
  await waitForText(katherine, "Choose at least one server");
  await page.getByRole("checkbox", { name: "crm (Customers)" }).check();
  await look(katherine, "consent-tools-some", { status: 400, referrerPolicy: "no-referrer" });
  await katherine.press("Allow");
  await page.waitForURL(`${callback.loopbackUri}?**`);
  const { access_token: token } = await app.redeem(callback.seen.at(-1)?.searchParams.get("code") ?? "");
  expect(String(token)).not.toBe("undefined");

  await katherine.go("/apps?tab=allowed");
  await waitForText(katherine, "Use tools of MCP servers on your behalf: only crm");
  await katherine.press("Choose tools of Desk for First account");
  await dialog(page).getByLabel("Tools, selected").press("Backspace");
  await writeList(page, "crm/search");
  await look(katherine, "apps-allowed-tools");
  await dialog(page).getByRole("button", { name: "Save tools" }).click();
  await waitForText(katherine, "The tools of Desk were saved and take effect immediately.");
  await waitForText(katherine, "only crm/search");
  expect(katherine.trouble).toEqual([]);
});

test("edits a key's tool list in its form, which marks invalid entries", async () => {
  await using ada = await arrive("/settings/api-keys");
  const { page } = ada;
  await ada.press("Create API key");
  await dialog(page).getByRole("textbox", { name: "Name" }).fill("Agent");
  expect(await dialog(page).getByLabel("Tools", { exact: true }).count()).toBe(0);
  await dialog(page)
    .getByRole("checkbox", { name: /^Use tools/ })
    .check();
  await unfold(page, "More settings", "Tools");
  await writeList(page, "crm", "Not-one!");
  await ada.press("Create key");
  await waitForText(ada, "Not-one! is not the name of a server");
  await look(ada, "keys-tools");
  await dialog(page).getByLabel("Tools, selected").press("Backspace");
  await ada.press("Create key");
  await ada.press("Done");
  const { data } = (await world.browser.ask("/v1/keys")) as { data: { name: string; tools: unknown }[] };
  expect(data.find(({ name }) => name === "Agent")?.tools).toEqual(["crm"]);
  expect(ada.trouble).toEqual([]);
});

test("lets an owner edit a member's tool list, an operator an account's, and a developer an app's", async () => {
  await using ada = await arrive("/settings/members");
  const { page } = ada;
  await page.getByRole("button", { name: `Manage Katherine Johnson, ${colleagues.member.email}` }).click();
  await writeList(page, "crm");
  await look(ada, "members-tools");
  await ada.press("Save tools");
  await waitForText(ada, "The tools of Katherine Johnson were saved and take effect immediately.");

  await ada.go(`/admin/accounts/${world.accountId}`);
  await writeListIn(page.getByRole("main"), "crm", "notes");
  await look(ada, "accounts-tools");
  await ada.press("Save");
  await waitForText(ada, "Saved. The change applies to the next request");

  await ada.go(`/apps/${app.id}`);
  await waitForText(ada, "All available tools");
  await ada.press("Edit");
  await dialog(page).getByLabel("Tools", { exact: true }).selectOption({ label: "None" });
  await look(ada, "apps-tools");
  await ada.press("Save");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("None", { exact: true }).first().waitFor();
  expect((await world.browser.ask(`/v1/apps/${app.id}`))["tools"]).toEqual([]);
  expect(ada.trouble).toEqual([]);
});
