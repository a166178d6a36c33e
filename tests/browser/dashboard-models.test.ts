// In a real browser: which models there are, where they run and how they do there, and what to do where there is none.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type Browser, invite, setUp } from "../support/browser.ts";
import { operator, pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { chatScript, chunk, json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function ada(path = "/catalog"): Promise<Visitor> {
  const visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const row = ({ page }: Visitor, id: string) => page.locator(".model-row").filter({ hasText: id });
const chosen = ({ page }: Visitor) => page.locator(".model-row h2").allTextContents();

test("shows each model's capabilities, price, deployments and their state", async () => {
  await using visitor = await ada();
  const mini = row(visitor, "aurora-mini");
  await mini.waitFor();
  for (const text of ["Chat", "32,768 tokens of context", "$0.15 in, $0.60 out per million tokens", "north", "south"]) {
    expect(await mini.getByText(text, { exact: true }).count(), text).toBe(1);
  }
  expect(await mini.getByText("Working", { exact: true }).count()).toBe(2);
  await look(visitor, "models");
});

test("refreshes running requests and speed every few seconds", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  world.models.south.script(async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ content: "Slowly" }));
    await promise;
    res.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  await using visitor = await ada();
  await visitor.page.clock.install();
  await visitor.page.reload();
  const ember = row(visitor, "ember-code");
  await ember.getByText("0 of 8 running").waitFor();
  const body = { model: "ember-code", messages: [{ role: "user", content: "Go" }], stream: true };
  const answer = await world.server.request("/v1/chat/completions", { body });
  await visitor.page.clock.fastForward(5_000);
  await ember.getByText("1 of 8 running").waitFor();
  resolve();
  await answer.text();
  await visitor.page.clock.fastForward(5_000);
  await ember.getByText("0 of 8 running").waitFor();
  world.models.south.script(chatScript());
  expect(visitor.trouble).toEqual([]);
});

test("filters models with the filter in the address, and leads back from an empty result", async () => {
  await using visitor = await ada();
  await visitor.fill({ Search: "aurora north" });
  await until(async () => (await chosen(visitor)).length === 2, "two models are left");
  await visitor.page.getByRole("combobox", { name: "Can do" }).click();
  await visitor.page.getByRole("option", { name: "Embeddings" }).click();
  await visitor.page.getByRole("heading", { name: "No matching model" }).waitFor();
  await visitor.page.waitForURL("**/catalog?search=aurora+north&use=embeddings");
  await visitor.press("Show all models");
  await until(async () => (await chosen(visitor)).length === 5, "all are there");
  await visitor.go("/catalog?use=embeddings");
  await row(visitor, "atlas-embed").waitFor();
  expect(await chosen(visitor)).toEqual(["atlas-embed"]);
  expect(visitor.trouble).toEqual([]);
});

test("opens a filter by keyboard at its current value although options are drawn late", async () => {
  await using visitor = await ada("/catalog?use=completion");
  const { page } = visitor;
  const use = page.getByRole("combobox", { name: "Can do" });
  await use.waitFor();
  const drawn = () => page.locator("[role=option]").count();
  expect(await drawn()).toBe(0);
  await use.focus();
  await page.keyboard.press("ArrowDown");
  const active = await use.getAttribute("aria-activedescendant");
  expect(await page.locator(`[id="${active}"]`).textContent()).toBe("Text completion");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/catalog?use=embeddings");
  expect(visitor.trouble).toEqual([]);
});

test("lists hundreds of models from first to last", async () => {
  await using visitor = await ada();
  const { page } = visitor;
  await page.route("**/v1/model-status", async (route) => {
    const answer = await route.fetch();
    const { data, ...rest } = (await answer.json()) as { data: { id: string }[] };
    const more = Array.from({ length: 300 }, (_, at) => ({ ...data[0], id: `copy-${at}` }));
    await route.fulfill({ json: { ...rest, data: [...data, ...more] } });
  });
  await page.reload();
  await until(async () => (await chosen(visitor)).length === 305, "all rows are there");
  const last = row(visitor, "copy-299");
  expect(await last.ariaSnapshot()).toContain("copy-299");
  await until(async () => {
    // Again where the rows had not their heights yet: the end was elsewhere then.
    await page.keyboard.press("End");
    return await last.evaluate((element) => element.getBoundingClientRect().bottom <= innerHeight);
  }, "the end of the list is in view");
  expect(visitor.trouble).toEqual([]);
});

test("opens a model in the playground", async () => {
  await using visitor = await ada();
  await visitor.page.getByRole("link", { name: "Try ember-code" }).click();
  await visitor.page.getByRole("heading", { name: "Ask ember-code a question" }).waitFor();
  expect(visitor.path()).toBe("/playground?model=ember-code");
  expect(visitor.trouble).toEqual([]);
});

test("describes a drained or unreachable deployment in words", async () => {
  await world.browser.ask("/v1/admin/upstreams/south", { method: "PATCH", body: { draining: true } });
  await using visitor = await ada();
  await row(visitor, "aurora-mini").getByText("Draining").waitFor();
  await visitor.page.getByText("5 models, 2 with problems").waitFor();
  await visitor.page.getByRole("combobox", { name: "Health" }).click();
  await visitor.page.getByRole("option", { name: "With problems" }).click();
  await until(async () => (await chosen(visitor)).length === 2, "the two are left");
  await look(visitor, "models-trouble");
  await world.browser.ask("/v1/admin/upstreams/south", { method: "PATCH", body: { draining: false } });
});

test("adds a typed fallback by its exact name, and opens its closed section on an error", async () => {
  await using visitor = await ada();
  const { page } = visitor;
  await page.route("**/v1/admin/models", async (route) => {
    const answer = await route.fetch();
    const { data, ...rest } = (await answer.json()) as { data: { id: string }[] };
    await route.fulfill({ json: { ...rest, data: [{ ...data[0], id: "Aurora-MINI" }, ...data] } });
  });
  await page.reload();
  await visitor.press("Add model");
  const dialog = page.getByRole("dialog").last();
  const press = (name: string) => dialog.getByRole("button", { name, exact: true }).click();
  await dialog.getByRole("textbox", { name: "Id" }).fill("team/fast");
  await press("More settings");
  const fallbacks = dialog.getByRole("combobox", { name: "Fallback models" });
  await fallbacks.fill("aurora-mini");
  // Names are compared with the list, which may still be on its way.
  await page.getByRole("option", { name: "aurora-mini", exact: true }).waitFor();
  await dialog.getByRole("textbox", { name: "Owner" }).focus();
  await dialog.locator(".mantine-Pill-label").first().waitFor();
  expect(await dialog.locator(".mantine-Pill-label").allTextContents()).toEqual(["aurora-mini"]);
  await fallbacks.fill("aurora-larg");
  await press("More settings");
  await fallbacks.waitFor({ state: "hidden" });
  await press("Add model");
  await fallbacks.waitFor({ state: "visible" });
  await dialog.getByText('"aurora-larg" was not added: it is not in the list').waitFor();
});

test("declares, prices, changes and removes a model as an operator, and marks models of the file", async () => {
  await world.browser.ask("/v1/admin/tiers/bounded", {
    ...{ method: "PUT", body: { requests_per_minute: null, tokens_per_minute: null, monthly_spend: 5 } },
  });
  await using visitor = await ada();
  const { page } = visitor;
  const dialog = page.getByRole("dialog").last();
  const press = (name: string) => dialog.getByRole("button", { name, exact: true }).click();
  const model = (id: string) => world.browser.ask(`/v1/admin/models/${encodeURIComponent(id)}`);
  await page.getByText("Usage of these models is not counted as spend").waitFor();
  await row(visitor, "ember-code").getByText("No price set: usage is not counted as spend").waitFor();

  await page.getByRole("button", { name: "Details of ember-code" }).click();
  await dialog.getByText("is set in headrace.yaml and read-only here").waitFor();
  expect(await dialog.getByRole("button", { name: "Set price and more" }).count()).toBe(0);
  await look(visitor, "model-of-the-file");
  await page.keyboard.press("Escape");

  await visitor.press("Add model");
  await dialog.getByRole("textbox", { name: "Id" }).fill("team/fast");
  await dialog.getByRole("textbox", { name: "Price of input" }).fill("0.15");
  await press("Add deployment");
  await dialog.getByRole("combobox", { name: "Upstream" }).selectOption("north");
  await dialog.getByRole("textbox", { name: "Model id there" }).fill("aurora-mini");
  await press("Add model");
  await dialog.getByText("Enter both prices, or neither.").waitFor();
  await dialog.getByRole("textbox", { name: "Price of output" }).fill("0.6");
  await press("Add deployment");
  await dialog.getByRole("combobox", { name: "Upstream" }).last().selectOption("north");
  await dialog.getByRole("textbox", { name: "Model id there" }).last().fill("aurora-mini");
  await press("More settings");
  const fallbacks = dialog.getByRole("combobox", { name: "Fallback models" });
  // Typed text that names no model stays in the field, says so, and keeps the form from being sent.
  await fallbacks.fill("aurora-larg");
  await press("Add model");
  await dialog.getByText('"aurora-larg" was not added: it is not in the list').waitFor();
  expect(await fallbacks.inputValue()).toBe("aurora-larg");
  // A name that was typed in full is added as the field is left.
  await fallbacks.fill("aurora-large");
  await press("Add model");
  await dialog.getByText("Is the same upstream and model as an earlier deployment").waitFor();
  expect(visitor.trouble.splice(0)).toHaveLength(2);
  await look(visitor, "model-new");
  await press("Remove deployment 2");
  await press("Add model");
  await dialog.getByRole("heading", { name: "team/fast" }).waitFor();
  expect(visitor.path()).toBe("/catalog?model=team%2Ffast");
  expect(await model("team/fast")).toMatchObject({
    ...{ source: "database", status: "ok", price: { input: 0.15, output: 0.6 }, fallbacks: ["aurora-large"] },
    ...{ deployments: [{ upstream: "north", model: "aurora-mini" }], capabilities: null },
  });
  await look(visitor, "model");

  await press("Edit");
  await dialog.getByRole("textbox", { name: "Price of output" }).fill("0.7");
  await look(visitor, "model-edit");
  await press("Save");
  await dialog.getByText("$0.15 in, $0.70 out per million tokens").waitFor();
  expect(await model("team/fast")).toMatchObject({ price: { output: 0.7 }, fallbacks: ["aurora-large"] });
  await press("Remove");
  await page
    .getByRole("dialog", { name: "Remove team/fast?" })
    .getByRole("button", { name: "Remove model", exact: true })
    .click();
  await row(visitor, "team/fast").waitFor({ state: "detached" });
  expect(visitor.path()).toBe("/catalog");
  await visitor.go("/admin/audit-log?target=team%2Ffast");
  await page.getByText("price: (input 0.15, output 0.6) → (input 0.15, output 0.7)").first().waitFor();
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("shows that a declared model without its upstream runs nowhere, and what to do", async () => {
  await world.browser.ask("/v1/admin/upstreams", {
    ...{ method: "POST", body: { name: "brief", url: world.models.north.url, discover: false } },
  });
  await world.browser.ask("/v1/admin/models", {
    ...{ method: "POST", body: { id: "stranded", deployments: [{ upstream: "brief", model: "aurora-mini" }] } },
  });
  await world.browser.ask("/v1/admin/upstreams/brief", { method: "DELETE" });
  await using visitor = await ada("/catalog?model=stranded");
  const dialog = visitor.page.getByRole("dialog");
  await dialog.getByText("No upstream serves this model").waitFor();
  await dialog.getByText("Unknown upstream").waitFor();
  await look(visitor, "model-nowhere");
  await world.browser.ask("/v1/admin/models/stranded", { method: "DELETE" });
  expect(visitor.trouble).toEqual([]);
});

test("blocks cancelling during a removal, and keeps what was opened meanwhile", async () => {
  const add = (id: string) =>
    world.browser.ask("/v1/admin/models", { method: "POST", body: { id, deployments: [{ upstream: "north" }] } });
  await add("leaving");
  await add("staying");
  await using visitor = await ada();
  const { page } = visitor;
  const gate = Promise.withResolvers<void>();
  await page.route("**/v1/admin/models/leaving", async (route) => {
    if (route.request().method() === "DELETE") await gate.promise;
    await route.continue();
  });
  await page.getByRole("button", { name: "Details of leaving" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
  const question = page.getByRole("dialog", { name: "Remove leaving?" });
  await question.waitFor();
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  expect(await page.getByRole("dialog").getByRole("heading", { name: "leaving" }).isVisible()).toBe(true);
  await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
  await question.getByRole("button", { name: "Remove model", exact: true }).click();
  await question.getByRole("button", { name: "Cancel", disabled: true }).waitFor();
  expect(await question.locator("header button").isDisabled()).toBe(true);
  await page.keyboard.press("Escape");
  await page.mouse.click(5, 5);
  expect(await question.isVisible()).toBe(true);

  await page.goBack();
  await question.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Details of staying" }).click();
  await page.getByRole("dialog").getByRole("heading", { name: "staying" }).waitFor();
  gate.resolve();
  await page.getByRole("alert").filter({ hasText: "The dashboard settings of leaving were removed." }).waitFor();
  expect(visitor.path()).toBe("/catalog?model=staying");
  await world.browser.ask("/v1/admin/models/staying", { method: "DELETE" });
  expect(visitor.trouble).toEqual([]);
});

test("keeps a drawer's form on an outside click, sends only changes, and stays open on an error", async () => {
  const body = { id: "edited", price: { input: 1, output: 2 }, owned_by: "us", deployments: [{ upstream: "north" }] };
  await world.browser.ask("/v1/admin/models", { method: "POST", body });
  await using visitor = await ada("/catalog?model=edited");
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Edit", exact: true }).click();
  await dialog.getByRole("textbox", { name: "Price of output" }).fill("3");
  await page.mouse.click(5, 5);
  await visitor.press("Keep editing");
  await page.getByRole("dialog", { name: "Discard your changes?" }).waitFor({ state: "detached" });
  expect(await dialog.getByRole("textbox", { name: "Price of output" }).inputValue()).toBe("3");
  // Somebody else, meanwhile.
  await world.browser.ask("/v1/admin/models/edited", { method: "PATCH", body: { owned_by: "them" } });
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByText("$1.00 in, $3.00 out per million tokens").waitFor();
  expect(await world.browser.ask("/v1/admin/models/edited")).toMatchObject({
    ...{ owned_by: "them", price: { input: 1, output: 3 } },
  });
  await page.mouse.click(5, 5);
  await dialog.waitFor({ state: "detached" });

  await visitor.press("Add model");
  await dialog.getByRole("textbox", { name: "Id" }).fill("wrong-inside");
  await page.route("**/v1/admin/models", async (route) => {
    if (route.request().method() !== "POST") return await route.continue();
    const error = { message: "owned_by: is not liked.", type: "invalid_request_error", param: "owned_by", code: "x" };
    return await route.fulfill({ status: 400, json: { error } });
  });
  await dialog.getByRole("button", { name: "Add model", exact: true }).click();
  await dialog.getByText("Is not liked.").waitFor();
  const gate = Promise.withResolvers<void>();
  await page.unroute("**/v1/admin/models");
  await page.route("**/v1/admin/models", async (route) => {
    await gate.promise;
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Add model", exact: true }).click();
  await dialog.getByText("Is not liked.").waitFor({ state: "detached" });
  expect(await dialog.getByRole("button", { name: "More settings", expanded: true }).isVisible()).toBe(true);
  gate.resolve();
  await dialog.getByRole("heading", { name: "wrong-inside" }).waitFor();
  for (const id of ["edited", "wrong-inside"]) {
    await world.browser.ask(`/v1/admin/models/${id}`, { method: "DELETE" });
  }
  expect(visitor.trouble.splice(0)).toHaveLength(2);
});

/** A visitor with the cookies of somebody who signed in without a screen. */
async function visitorAs(browser: Browser, server: TestServer): Promise<Visitor> {
  const at = pagesOf(server);
  const visitor = await openVisitor({ at });
  const cookies = [...browser.cookies].map(([name, value]) => ({ name, value, url: at, httpOnly: true }));
  await visitor.context.addCookies(cookies.map((cookie) => ({ ...cookie, sameSite: "Lax" as const })));
  return visitor;
}

test("leads an operator without models to the upstreams, and tells a member whom to ask", async () => {
  await using server = await startHeadrace();
  const handler = await setUp(server, { person: operator });
  await using visitor = await visitorAs(handler, server);
  await visitor.go("/catalog");
  const next = visitor.page.getByRole("link", { name: "Add an upstream" });
  await next.waitFor();
  expect(await next.getAttribute("href")).toBe("/admin/upstreams");
  await look(visitor, "models-none");
  await visitor.go("/playground");
  await next.waitFor();
  await using member = await visitorAs(await invite(handler, { person: colleagues.member }), server);
  await member.go("/catalog");
  await member.page.getByText("ask an operator of this server", { exact: false }).waitFor();
  expect(await member.page.getByRole("link", { name: "Add an upstream" }).count()).toBe(0);
  expect([...visitor.trouble, ...member.trouble]).toEqual([]);
});

test("shows an operator loaded model commands, loads and pins one, and shows its output", async () => {
  const program = join(import.meta.dir, "..", "support", "model-server.ts");
  const command = `${process.execPath} ${program} --port \${PORT} --model small`;
  const commands = `- { name: small, command: "${command}", models: [small], memory: { ram: 4GB } }`;
  await using server = await startHeadrace({ yaml: `engine:\n  memory: { ram: 6GB }\n  commands:\n    ${commands}\n` });
  const handler = await setUp(server, { person: operator });
  await using visitor = await visitorAs(handler, server);
  await visitor.go("/catalog");
  const { page } = visitor;
  const part = page.getByRole("region", { name: "Model processes" });
  await part.getByText("Not loaded", { exact: true }).waitFor();
  await part.getByRole("button", { name: "Load small" }).click();
  await part.getByText("Loaded", { exact: true }).waitFor();
  await part.getByRole("button", { name: "Pin small" }).click();
  await part.getByText("pinned", { exact: false }).waitFor();
  await part.getByRole("button", { name: "Output of small" }).click();
  await part.getByText("loading small, with 0 bytes", { exact: false }).waitFor();
  await part.getByText(/Reserved memory: RAM 4.* GB of 6.* GB/).waitFor();
  await look(visitor, "models-processes");
  expect(visitor.trouble).toEqual([]);
});

test("compares a model with its shadow for an operator", async () => {
  await using upstream = await startUpstream(({ body }, res) =>
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: body["model"] },
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1_234, completion_tokens: 5, total_tokens: 1_239 },
    }),
  );
  const models = ["old", "new"].map((id) => `{ id: ${id}, deployments: [{ upstream: up, model: upstream-model }]`);
  const policies = "policies: { shadow: { model: new, percent: 100 } }";
  const yaml = upstreamYaml(upstream, `models:\n  - ${models[0]}, ${policies} }\n  - ${models[1]} }\n`);
  await using server = await startHeadrace({ yaml });
  const handler = await setUp(server, { person: operator });
  await server.request("/v1/chat/completions", { body: { model: "old", messages: [{ role: "user", content: "Hi" }] } });
  await until(() => upstream.requests.length === 2, "the shadow's request");
  await Bun.sleep(200);
  await server.governance.ledger.flush();
  await using visitor = await visitorAs(handler, server);
  await visitor.go("/catalog");
  const { page } = visitor;
  await page.getByRole("button", { name: "Details of old" }).click();
  const part = page.getByRole("region", { name: "old and new" });
  await part.getByText("1,234", { exact: true }).first().waitFor();
  expect(await part.getByText("1,234", { exact: true }).count()).toBe(2);
  await look(visitor, "model-beside-its-shadow");
  expect(visitor.trouble).toEqual([]);
});
