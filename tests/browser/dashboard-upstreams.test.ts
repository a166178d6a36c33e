// In a real browser: operators test, add, drain, change and remove model servers, and see how the server does.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { failingModel } from "../support/dashboard-models.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let world: DashboardWorld;
let lab: ScriptedUpstream;

beforeAll(async () => {
  world = await openDashboardWorld();
  lab = await startUpstream((_asked, res) => void res.writeHead(500).end());
  lab.serves(["lab-large", "lab-mini"].map((id) => ({ id, object: "model", created: 1_700_000_000, owned_by: "lab" })));
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await lab[Symbol.asyncDispose]();
});

async function arrive(path: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size: desktop });
  await visitor.page.emulateMedia({ reducedMotion: "reduce" });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const dialog = (page: Page) => page.getByRole("dialog").last();
const press = (page: Page, name: string) => dialog(page).getByRole("button", { name, exact: true }).click();
const answer = (page: Page, title: string, action: string) =>
  page.getByRole("dialog", { name: title }).getByRole("button", { name: action, exact: true }).click();
const upstream = async (name: string) => await world.browser.ask(`/v1/admin/upstreams/${name}`);
const models = async () =>
  ((await world.browser.ask("/v1/models"))["data"] as Record<string, unknown>[]).map(({ id }) => id);

test("tests a model server before adding it, and then serves its models", async () => {
  await using visitor = await arrive("/admin/upstreams");
  const { page } = visitor;
  await page.getByRole("button", { name: "north" }).waitFor();
  await look(visitor, "upstreams");
  await visitor.press("Add upstream");
  const address = dialog(page).getByRole("textbox", { name: "Base URL" });
  await address.fill("http://127.0.0.1:9/v1");
  await press(page, "Test connection");
  await dialog(page).getByText("The test failed").waitFor();
  await dialog(page).getByRole("button", { name: "Add anyway" }).waitFor();
  await look(visitor, "upstreams-test-failed");
  // Another address is another server: what was found of the first says nothing of it.
  await address.fill(lab.url);
  await dialog(page).getByText("The test failed").waitFor({ state: "detached" });
  await press(page, "Test connection");
  await dialog(page).getByText("It works: 2 models").waitFor();
  await dialog(page).getByText("lab-mini").waitFor();
  const name = dialog(page).getByRole("textbox", { name: "Name" });
  // The suggestion follows the address, instead of naming the one that failed.
  expect(await name.inputValue()).toBe(new URL(lab.url).host.replace(":", "-"));
  await name.fill("north");
  await press(page, "More settings");
  await dialog(page).getByRole("textbox", { name: "Max concurrent requests" }).fill("4");
  await look(visitor, "upstreams-new");
  const refused = page.waitForResponse((response) => response.status() === 400);
  await press(page, "Add upstream");
  await refused;
  await dialog(page).getByText("headrace.yaml has an upstream north").waitFor();
  expect(visitor.trouble.splice(0)).toHaveLength(2);
  await name.fill("lab");
  await press(page, "Add upstream");
  await dialog(page).getByRole("heading", { name: "lab" }).waitFor();
  expect(await upstream("lab")).toMatchObject({ source: "database", models: 2, max_concurrency: 4, state: "ok" });
  expect(await models()).toContain("lab-large");
  await dialog(page).getByText("Its 2 models have no price").waitFor();
  await look(visitor, "upstream");
  expect(visitor.path()).toBe("/admin/upstreams?upstream=lab");
  await dialog(page).getByRole("link", { name: "Set prices" }).click();
  await page.getByRole("button", { name: "Details of lab-large" }).waitFor();
  expect(visitor.path()).toBe("/catalog?search=lab");
  expect(visitor.trouble).toEqual([]);
});

test("explains draining, and sends a drained server nothing until it is resumed", async () => {
  await using visitor = await arrive("/admin/upstreams?upstream=south");
  const { page } = visitor;
  await dialog(page).getByText("You can only drain it here").waitFor();
  await press(page, "Drain");
  await page.getByText("receives no new ones").waitFor();
  await look(visitor, "upstream-drain");
  await answer(page, "Drain south?", "Drain");
  await dialog(page).getByText("Drained", { exact: true }).waitFor();
  expect(await upstream("south")).toMatchObject({ state: "draining" });
  await press(page, "Resume");
  await dialog(page).getByText("Working", { exact: true }).waitFor();
  expect(await upstream("south")).toMatchObject({ state: "ok" });
  await press(page, "Test");
  await dialog(page).getByText("It works: 2 models").waitFor();
  expect(await dialog(page).getByRole("button", { name: "Edit" }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("changes and removes an added upstream, and explains an unreachable one", async () => {
  await world.browser.ask("/v1/admin/upstreams", {
    ...{ method: "POST", body: { name: "old", url: lab.url, api_key: "sk-old-0123456789" } },
  });
  await using visitor = await arrive("/admin/upstreams?upstream=old");
  const { page } = visitor;
  await press(page, "Edit");
  const address = dialog(page).getByRole("textbox", { name: "Base URL" });
  await address.fill("http://127.0.0.1:9/v1");
  await press(page, "Save");
  await dialog(page).getByText("Is required where url moves").waitFor();
  expect(visitor.trouble.splice(0)).toHaveLength(2);
  await dialog(page).getByRole("checkbox", { name: "Remove the stored API key" }).check();
  await look(visitor, "upstream-edit");
  await press(page, "Save");
  await dialog(page).getByText("This upstream cannot be reached").first().waitFor();
  expect(await upstream("old")).toMatchObject({ state: "unreachable", has_api_key: false });
  await look(visitor, "upstream-unreachable");
  await press(page, "Remove");
  await answer(page, "Remove old?", "Remove upstream");
  await page.getByRole("button", { name: "old", exact: true }).waitFor({ state: "detached" });
  expect(visitor.path()).toBe("/admin/upstreams");
  expect(visitor.trouble).toEqual([]);
});

test("counts a failing upstream in the menu", async () => {
  await using visitor = await arrive("/settings/members");
  const { page } = visitor;
  await page.getByRole("link", { name: "Upstreams", exact: true }).waitFor();
  const body = { model: failingModel, messages: [{ role: "user", content: "Hi" }] };
  for (let count = 0; count < 6; count++) await world.server.request("/v1/chat/completions", { body });
  await page.reload();
  await page.getByRole("link", { name: /^Upstreams\s*1 failing$/ }).waitFor();
  await look(visitor, "menu-failing");
});

test("shows a calm server state while healthy, and names problems", async () => {
  await using visitor = await arrive("/admin/system");
  const { page } = visitor;
  // A busy machine answers late, which the page rightly says.
  await page.getByText(/All checks passed|Needs attention/).waitFor();
  await page.getByText("database", { exact: true }).waitFor();
  await look(visitor, "system");
  const figures = await world.browser.ask("/v1/admin/system");
  await page.route("**/v1/admin/system", (route) =>
    route.fulfill({ json: { ...figures, checks: { database: "failed", models: "starting", server: "ok" } } }),
  );
  await until(() => page.getByText("A check failed").isVisible(), "the page asked again");
  await page.getByText("The database is unavailable").waitFor();
  await look(visitor, "system-failing");
});

test("names a failing upstream with its last error on Overview, Models and Upstreams", async () => {
  await using broken = await startUpstream(
    (_asked, res) =>
      void res.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"CUDA out of memory"}}'),
  );
  broken.serves([{ id: "broken-model", object: "model", created: 1_700_000_000, owned_by: "lab" }]);
  const body = { name: "broken", url: broken.url, environments: ["dev", "live"] };
  await world.browser.ask("/v1/admin/upstreams", { method: "POST", body });
  for (let i = 0; i < 5; i++) {
    const asked = { model: "broken-model", messages: [{ role: "user", content: "x" }] };
    await (await world.server.request("/v1/chat/completions", { body: asked })).text();
  }
  expect((await upstream("broken"))["attempts"]).toMatchObject({ failing: true });
  const words = /5 of 5 failed in 2 min, last: 500 "CUDA out of memory" \(server error\)/;
  await using visitor = await arrive("/");
  const { page } = visitor;
  await page.getByText(words).waitFor();
  await look(visitor, "overview-failing");
  await visitor.go("/catalog");
  await page.getByText(words).waitFor();
  await look(visitor, "models-failing");
  await visitor.go("/admin/upstreams");
  await page.getByRole("row").filter({ hasText: words }).getByText("Failing", { exact: true }).waitFor();
  await page.getByText(words).waitFor();
  await look(visitor, "upstreams-failing");
  await page.getByRole("button", { name: "broken" }).click();
  await dialog(page).getByText("This upstream fails requests for broken-model").waitFor();
  await look(visitor, "upstream-failing");
  expect(visitor.trouble).toEqual([]);
});
