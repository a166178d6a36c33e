// In a real browser: which models there are, where they run and how they do there, and what to do where there is none.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Browser, invite, setUp } from "../support/browser.ts";
import { operator, pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { look } from "../support/page-look.ts";
import { chatScript, chunk } from "../support/scripted-upstream.ts";

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

test("each model says what it can do and costs, where it runs and how it does there", async () => {
  await using visitor = await ada();
  const mini = row(visitor, "aurora-mini");
  await mini.waitFor();
  for (const text of ["Chat", "32,768 tokens of context", "$0.15 in, $0.60 out per million tokens", "north", "south"]) {
    expect(await mini.getByText(text, { exact: true }).count(), text).toBe(1);
  }
  expect(await mini.getByText("Working", { exact: true }).count()).toBe(2);
  await look(visitor, "models");
});

test("what runs and how fast answers come is shown anew every few seconds", async () => {
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

test("filters choose models and stay in the address; none that fits leads back to all", async () => {
  await using visitor = await ada();
  await visitor.fill({ Search: "aurora north" });
  await until(async () => (await chosen(visitor)).length === 2, "two models are left");
  await visitor.page.getByRole("combobox", { name: "Can do" }).click();
  await visitor.page.getByRole("option", { name: "Embeddings" }).click();
  await visitor.page.getByRole("heading", { name: "No model matches" }).waitFor();
  await visitor.page.waitForURL("**/catalog?search=aurora+north&use=embeddings");
  await visitor.press("Show all models");
  await until(async () => (await chosen(visitor)).length === 5, "all are there");
  await visitor.go("/catalog?use=embeddings");
  await row(visitor, "atlas-embed").waitFor();
  expect(await chosen(visitor)).toEqual(["atlas-embed"]);
  expect(visitor.trouble).toEqual([]);
});

test("a model is tried in the playground", async () => {
  await using visitor = await ada();
  await visitor.page.getByRole("link", { name: "Try ember-code" }).click();
  await visitor.page.getByRole("heading", { name: "Ask ember-code something" }).waitFor();
  expect(visitor.path()).toBe("/playground?model=ember-code");
  expect(visitor.trouble).toEqual([]);
});

test("a place that is drained, or out of reach, says so in words", async () => {
  await world.browser.ask("/v1/admin/upstreams/south", { method: "PATCH", body: { draining: true } });
  await using visitor = await ada();
  await row(visitor, "aurora-mini").getByText("Draining").waitFor();
  await visitor.page.getByText("5 models, 2 with trouble").waitFor();
  await visitor.page.getByRole("combobox", { name: "Health" }).click();
  await visitor.page.getByRole("option", { name: "With trouble" }).click();
  await until(async () => (await chosen(visitor)).length === 2, "the two are left");
  await look(visitor, "models-trouble");
  await world.browser.ask("/v1/admin/upstreams/south", { method: "PATCH", body: { draining: false } });
});

/** A visitor with the cookies of somebody who signed in without a screen. */
async function visitorAs(browser: Browser, server: TestServer): Promise<Visitor> {
  const at = pagesOf(server);
  const visitor = await openVisitor({ at });
  const cookies = [...browser.cookies].map(([name, value]) => ({ name, value, url: at, httpOnly: true }));
  await visitor.context.addCookies(cookies.map((cookie) => ({ ...cookie, sameSite: "Lax" as const })));
  return visitor;
}

test("where there is no model an operator is led to the upstreams, and a member told whom to ask", async () => {
  await using server = await startHeadrace();
  const desk = await setUp(server, { person: operator });
  await using visitor = await visitorAs(desk, server);
  await visitor.go("/catalog");
  const next = visitor.page.getByRole("link", { name: "Add an upstream" });
  await next.waitFor();
  expect(await next.getAttribute("href")).toBe("/admin/upstreams");
  await look(visitor, "models-none");
  await visitor.go("/playground");
  await next.waitFor();
  await using member = await visitorAs(await invite(desk, { person: colleagues.member }), server);
  await member.go("/catalog");
  await member.page.getByText("ask whoever operates this server", { exact: false }).waitFor();
  expect(await member.page.getByRole("link", { name: "Add an upstream" }).count()).toBe(0);
  expect([...visitor.trouble, ...member.trouble]).toEqual([]);
});
