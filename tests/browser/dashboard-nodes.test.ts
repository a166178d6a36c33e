// In a real browser: operators let a machine join as a node, approve what it may serve, drain, change and remove it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { joinNode } from "../support/joined-node.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size: desktop });
  await visitor.page.emulateMedia({ reducedMotion: "reduce" });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

interface Made {
  id: string;
  token: string;
}

const dialog = (page: Page) => page.getByRole("dialog").last();
const press = (page: Page, name: string) => dialog(page).getByRole("button", { name, exact: true }).click();
const answer = (page: Page, title: string, action: string) =>
  page.getByRole("dialog", { name: title }).getByRole("button", { name: action, exact: true }).click();
const isFocused = (part: Locator) => part.evaluate((element) => element === document.activeElement);
const node = async (id: string) => await world.browser.ask(`/v1/admin/nodes/${id}`);
const newToken = async (body: object = {}) =>
  (await world.browser.ask("/v1/admin/node-tokens", { method: "POST", body })) as unknown as Made;
const offers = async (model: string) =>
  ((await world.browser.ask("/v1/models"))["data"] as Record<string, unknown>[]).some(({ id }) => id === model);
/** A machine with a token of its own. */
const machine = async (name: string, announced: readonly string[], body: object = {}) =>
  await joinNode({ url: world.server.url, token: (await newToken(body)).token, name, models: announced });

test("joins a machine by the dialog's command, waits for it, and serves only approved models", async () => {
  await using visitor = await arrive("/admin/nodes");
  const { page } = visitor;
  await page.getByText("No nodes yet").waitFor();
  await look(visitor, "nodes-empty");
  await visitor.press("Add a node");
  await dialog(page).getByRole("radio", { name: "Selected models" }).check();
  await press(page, "Create command");
  await dialog(page).getByText("Enter at least one model").waitFor();
  await look(visitor, "nodes-add");
  await dialog(page).getByRole("radio", { name: "None before I approve them" }).check();
  await press(page, "Create command");
  await dialog(page).getByText("Waiting for the machine to join").waitFor();
  const command = (await dialog(page).getByLabel("Copy the command", { exact: true }).textContent()) ?? "";
  const [, url = "", token = ""] = /^npx headrace node join (\S+) --token (\S+)$/.exec(command) ?? [];
  expect(url).toBe(world.server.url);
  await look(visitor, "nodes-joining");
  await using joined = await joinNode({ url, token, name: "attic", models: ["attic-large", "attic-embed"] });
  await dialog(page).getByText("attic has joined").waitFor();
  await dialog(page).getByText("announces 2 models").waitFor();
  await look(visitor, "nodes-joined");
  await press(page, "Choose models");
  await dialog(page).getByText("This node waits for your approval").waitFor();
  expect(visitor.path()).toBe(`/admin/nodes?node=${joined.id}`);
  await dialog(page).getByRole("checkbox", { name: "attic-large" }).check();
  await press(page, "Approve");
  await dialog(page).getByText("Online", { exact: true }).waitFor();
  expect(await node(joined.id)).toMatchObject({ status: "online", approved_models: ["attic-large"] });
  await until(() => offers("attic-large"), "what is approved can be called");
  expect(await offers("attic-embed")).toBe(false);
  await look(visitor, "node");
  await press(page, "Close");
  await page.getByText("1 of 2").waitFor();
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("lists nodes awaiting approval first, and approves future models with the choice for all now and later", async () => {
  await using waiting = await machine("workstation", ["ws-mini"]);
  await using visitor = await arrive("/admin/nodes");
  const { page } = visitor;
  await page.getByText("workstation waits for your approval").waitFor();
  await page.getByRole("link", { name: /^Nodes\s*1 to approve$/ }).waitFor();
  const { token } = await newToken({ approved_models: ["*"] });
  await page.getByText("Pending join tokens").waitFor();
  await page.getByText(`…${token.slice(-4)}`).waitFor();
  await look(visitor, "nodes");
  await visitor.press("Review workstation");
  await dialog(page).getByRole("switch", { name: "All announced models, now and later" }).check();
  await press(page, "Approve");
  await dialog(page).getByText("Online", { exact: true }).waitFor();
  await page.getByText("workstation waits for your approval").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Nodes", exact: true }).waitFor();
  waiting.announce(["ws-mini", "ws-large"]);
  await dialog(page).getByText("ws-large").waitFor();
  await until(() => offers("ws-large"), "what is announced later can be called");
  await dialog(page).getByRole("switch", { name: "All announced models, now and later" }).uncheck();
  await dialog(page).getByRole("checkbox", { name: "ws-large" }).uncheck();
  await press(page, "Save");
  await page.getByText("workstation now serves 1 model").waitFor();
  expect(await node(waiting.id)).toMatchObject({ approved_models: ["ws-mini"] });
  expect(visitor.trouble).toEqual([]);
});

test("changes, drains and removes a node, names the consequences, and lets it join no more", async () => {
  await using old = await machine("old", ["old-mini"], { approved_models: ["*"] });
  await using visitor = await arrive(`/admin/nodes?node=old`);
  const { page } = visitor;
  await press(page, "Edit");
  await press(page, "Cancel");
  await until(
    () => isFocused(dialog(page).getByRole("button", { name: "Edit" })),
    "the keyboard is where it came from",
  );
  await press(page, "Edit");
  const name = dialog(page).getByRole("textbox", { name: "Name" });
  await until(() => isFocused(name), "the keyboard is in the form");
  await name.fill("north");
  await press(page, "Save");
  await dialog(page).getByText("already; choose another name").waitFor();
  expect(visitor.trouble.splice(0)).toHaveLength(2);
  await name.fill("cellar");
  await dialog(page).getByRole("checkbox", { name: "Test" }).check();
  await dialog(page).getByRole("textbox", { name: "Max concurrent requests" }).fill("3");
  await dialog(page).getByRole("switch", { name: "Local server" }).click();
  await look(visitor, "node-edit");
  await press(page, "Save");
  await dialog(page).getByRole("heading", { name: "cellar" }).waitFor();
  expect(await node(old.id)).toMatchObject({
    ...{ name: "cellar", environments: ["live", "test", "dev"], max_concurrency: 3, local: true },
  });
  await press(page, "Drain");
  await answer(page, "Drain cellar?", "Drain");
  await dialog(page).getByText("Drained", { exact: true }).waitFor();
  expect(await node(old.id)).toMatchObject({ status: "draining", draining: true });
  await press(page, "Resume");
  await dialog(page).getByText("Online", { exact: true }).waitFor();
  await press(page, "Remove");
  await page.getByText("The node is disconnected immediately").waitFor();
  await look(visitor, "node-remove");
  await answer(page, "Remove cellar?", "Remove node");
  await page.getByText("The node cellar was removed").waitFor();
  await page.getByRole("button", { name: "cellar", exact: true }).waitFor({ state: "detached" });
  expect(visitor.path()).toBe("/admin/nodes");
  await until(async () => !(await offers("old-mini")), "what it served can be called no more");
  expect(visitor.trouble).toEqual([]);
});

test("withdraws an unused token, and says so in a dialog that waits for it", async () => {
  await using visitor = await arrive("/admin/nodes?new");
  const { page } = visitor;
  await press(page, "Create command");
  const command = (await dialog(page).getByLabel("Copy the command", { exact: true }).textContent()) ?? "";
  const token = command.split(" ").at(-1) ?? "";
  await using other = await arrive("/admin/nodes");
  await other.press(`Revoke the token …${token.slice(-4)}`);
  await answer(other.page, "Revoke the join token?", "Revoke token");
  await other.page.getByText(`The join token …${token.slice(-4)} was revoked`).waitFor();
  await dialog(page).getByText("The command no longer works").waitFor();
  expect(joinNode({ url: world.server.url, token, name: "late" })).rejects.toThrow("lets nobody in");
  await press(page, "Create another command");
  await dialog(page).getByRole("radio", { name: "None before I approve them" }).waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("shows since when a node is away, and links to it from the upstreams", async () => {
  const gone = await machine("barn", ["barn-mini"], { approved_models: ["barn-mini"] });
  await using visitor = await arrive("/admin/upstreams?upstream=barn");
  const { page } = visitor;
  await dialog(page).getByText("through a node").waitFor();
  await dialog(page).getByRole("link", { name: "Show the node" }).click();
  await dialog(page).getByText("Online", { exact: true }).waitFor();
  await gone[Symbol.asyncDispose]();
  await dialog(page).getByText("This node is not connected").waitFor();
  await look(visitor, "node-offline");
  expect(visitor.trouble).toEqual([]);
});

test("names the replica that holds a node's connection only if there are several", async () => {
  await using shed = await machine("shed", ["shed-mini"], { approved_models: ["*"] });
  const { replica_id: id } = await node(shed.id);
  const system = await world.browser.ask("/v1/admin/system");
  const [own] = system["replicas"] as Record<string, unknown>[];
  const replicas = [
    { ...own, id, advertise_url: "http://10.0.0.7:7700" },
    { ...own, id: "rep_other", advertise_url: null, current: false },
  ];
  await using visitor = await arrive("/admin/nodes");
  const { page } = visitor;
  await page.getByRole("button", { name: "shed" }).waitFor();
  expect(await page.getByRole("columnheader", { name: "Replica" }).count()).toBe(0);
  await page.route("**/v1/admin/system", (route) => route.fulfill({ json: { ...system, replicas } }));
  await visitor.go("/admin/nodes");
  await page.getByRole("cell", { name: "10.0.0.7:7700" }).waitFor();
  await look(visitor, "nodes-replicas");
  await page.getByRole("button", { name: "shed" }).click();
  await dialog(page).getByText("Connected to replica").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("shows node names in the audit log of all accounts", async () => {
  await using there = await machine("loft", ["loft-mini"], { approved_models: ["loft-mini"] });
  await world.browser.ask(`/v1/admin/nodes/${there.id}`, { method: "PATCH", body: { max_concurrency: 2 } });
  // What anybody can cause is written in the background.
  const events = () => world.browser.ask(`/v1/admin/audit?action=node.connected&target=${there.id}`);
  await until(async () => ((await events())["data"] as unknown[]).length > 0, "the connection is in the audit log");
  await using visitor = await arrive("/admin/audit-log");
  const { page } = visitor;
  await page.getByText("The machine loft joined as a node").waitFor();
  await page.getByText("The node loft connected").waitFor();
  await page.getByText("changed the node loft").waitFor();
  await page.getByText("max concurrency: none → 2").waitFor();
  expect(visitor.trouble).toEqual([]);
});
