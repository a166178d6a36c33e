// In a real browser: an operator says what is done with a model's requests beyond that they are answered, and reads it again.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld({
    yaml: "guardrails:\n  - { name: no-secrets, kind: secrets, action: mask }\n  - { name: staff, kind: secrets }\n",
  });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function ada(path: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

async function policiesOf(id: string): Promise<unknown> {
  const { settings } = (await world.browser.ask(`/v1/admin/models/${id}`)) as { settings: { policies: unknown } };
  return settings.policies;
}

const declare = (id: string, more: Record<string, unknown> = {}) =>
  world.browser.ask("/v1/admin/models", {
    method: "POST",
    body: {
      ...{ id, price: { input: 1, output: 2 } },
      deployments: [
        { upstream: "north", model: "aurora-mini" },
        { upstream: "south", model: "aurora-mini" },
      ],
      ...more,
    },
  });

function parts({ page }: Visitor) {
  const dialog = page.getByRole("dialog").last();
  return {
    dialog,
    press: (name: string) => dialog.getByRole("button", { name, exact: true }).click(),
    turn: (name: string, on = true) => dialog.getByRole("switch", { name: new RegExp(`^${name}`) }).setChecked(on),
    /** Once it is saved: the form has the same words. */
    isRead: () => dialog.getByRole("button", { name: "Edit", exact: true }).waitFor(),
    fill: (name: string, text: string) => dialog.getByRole("textbox", { name, exact: true }).fill(text),
    /** In a list that is searched. */
    async choose(name: string, option: string) {
      await dialog.getByRole("combobox", { name, exact: true }).click();
      await page.getByRole("option", { name: option, exact: true }).click();
    },
  };
}

test("enables, validates, saves, describes and disables every model policy", async () => {
  await declare("governed");
  await using visitor = await ada("/catalog?model=governed");
  const { page } = visitor;
  const { dialog, press, turn, fill, choose, isRead } = parts(visitor);
  await press("Edit");
  await press("Policies");
  await turn("Continue cut streams");
  await turn("Overflow");
  await press("Add overflow server");
  await dialog.getByRole("combobox", { name: "Overflow to" }).selectOption("south");
  await fill("Cost of input", "0.1");
  await fill("If the prompt exceeds", "30000");
  const hours = dialog.getByRole("combobox", { name: "During these hours (UTC)" });
  await hours.fill("18-6");
  await page.keyboard.press("Enter");
  await fill("Maximum total cost", "50");
  await turn("Response cache");
  await fill("Lifetime", "7200");
  await fill("Price of a cached response", "7");
  await choose("Semantic matching with", "atlas-embed");
  await choose("Guardrails", "no-secrets");
  await page.keyboard.press("Escape");
  await turn("Shadow");
  await choose("Shadow model", "aurora-large");
  await turn("Split");
  await choose("Split model", "ember-code");
  await look(visitor, "model-policies-form");

  // One at a time is told, each where it is.
  await press("Save");
  await dialog.getByText("must be", { exact: false }).first().waitFor();
  await hours.press("Backspace");
  await hours.fill("18:00-06:00");
  await page.keyboard.press("Enter");
  await press("Save");
  await dialog.getByText("Is required", { exact: false }).first().waitFor();
  await fill("Cost of output", "0.4");
  await press("Save");
  await isRead();
  // Each refusal is told by the browser twice.
  expect(visitor.trouble.splice(0)).toHaveLength(4);
  expect(await policiesOf("governed")).toEqual({
    continuation: true,
    overflow: {
      to: [{ upstream: "south", cost: { input: 0.1, output: 0.4 }, cost_of: null }],
      ...{ after_seconds: 5, prompt_tokens_above: 30_000, hours: ["18:00-06:00"], most_usd_per_request: null },
      spend: { usd: 50, per: "day" },
    },
    cache: {
      ...{ requests: "deterministic", ttl_seconds: 7_200, price_factor: 0.07 },
      semantic: { model: "atlas-embed", threshold: 0.95 },
    },
    guardrails: ["no-secrets"],
    shadow: { model: "aurora-large", percent: 5 },
    split: [{ model: "ember-code", percent: 10 }],
  });
  const sentences = dialog.locator("ul.model-policies li");
  await sentences.nth(6).waitFor();
  expect(await sentences.allTextContents()).toEqual([
    "If a server cuts a stream, another server continues it, where an exact continuation is possible.",
    "south is used if other servers would make a request wait for 5 s, for prompts of more than 30,000 tokens or at 18:00-06:00 (UTC), for at most $50.00 per day.",
    "Overflow has cost $0.00 of $50.00 this day.",
    "A repeated request of an account, with temperature 0 or asking for the cache, gets the cached response for 2 h, at 7 % of the price. Requests with the same meaning match as well (atlas-embed, similarity from 0.95).",
    "Guardrails check requests and answers: no-secrets.",
    "5 % of the requests are also sent to aurora-large, for comparison only.",
    "ember-code answers 10 % of the requests.",
  ]);
  await dialog
    .getByText("aurora-large. No request was answered by both models in the last week.", { exact: false })
    .waitFor();
  await dialog
    .getByText("of the requests. Neither model answered a request in the last week.", { exact: false })
    .waitFor();
  await look(visitor, "model-policies");

  await press("Edit");
  for (const name of ["Continue cut streams", "Overflow", "Response cache", "Shadow", "Split"]) await turn(name, false);
  await press("Save");
  await isRead();
  expect(await policiesOf("governed")).toEqual({ guardrails: ["no-secrets"] });
  await page.goto(`${pagesOf(world.server)}/admin/audit-log?target=governed`);
  await page.getByText("policies").first().waitFor();
  await look(visitor, "model-policies-audit");
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("sends only the changed policy, and keeps fields of another that the form does not show", async () => {
  const overflow = {
    to: [{ upstream: "south", cost: { input: 1, output: 2, reasoning: 3 }, cost_of: "openai/gpt-5" }],
  };
  await declare("shared", { policies: { overflow, guardrails: ["staff"] } });
  await using visitor = await ada("/catalog?model=shared");
  const { dialog, press, turn, fill } = parts(visitor);
  await press("Edit");
  await turn("Continue cut streams");
  // Somebody else, meanwhile.
  await world.browser.ask("/v1/admin/models/shared", { method: "PATCH", body: { policies: { guardrails: null } } });
  await press("Save");
  await dialog.locator("ul.model-policies").waitFor();
  expect(await policiesOf("shared")).toMatchObject({ continuation: true, overflow });
  expect(await policiesOf("shared")).not.toHaveProperty("guardrails");
  await press("Edit");
  await fill("Cost of output", "5");
  await press("Save");
  await dialog.getByRole("button", { name: "Edit", exact: true }).waitFor();
  expect(await policiesOf("shared")).toMatchObject({
    overflow: { to: [{ upstream: "south", cost: { input: 1, output: 5, reasoning: 3 }, cost_of: "openai/gpt-5" }] },
  });
  expect(visitor.trouble).toEqual([]);
});
