// In a real browser: stored chats are found, read as nothing but text, labelled, and deleted one by one or together.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 12, requests: 100, chats: 120, events: 0 });
  url = world.server.url;
}, 60_000);

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const rows = (page: Page) => page.locator("tbody tr:has(a)");
const drawer = (page: Page) => page.getByRole("dialog", { name: "Stored chat" });
const gone = async (page: Page) => (await page.getByRole("dialog").count()) === 0;

/** Stores a chat by a request such as a program makes; gives its id. */
async function store(body: Record<string, unknown>): Promise<string> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${world.server.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "ember-code", store: true, ...body }),
  });
  return String(((await answer.json()) as { id: string }).id);
}

async function isStored(id: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${world.server.key}` };
  return (await fetch(`${url}/v1/chat/completions/${id}`, { headers })).ok;
}

test("searches chats by text, model and metadata, and keeps the search in the address", async () => {
  await using visitor = await arrive("/chats");
  const { page } = visitor;
  await rows(page).first().waitFor();
  await look(visitor, "chats");
  await page.getByLabel("Search").fill("LISBON");
  await until(() => visitor.path() === "/chats?search=LISBON", "the address");
  await until(async () => (await rows(page).count()) === 15, "chats about Lisbon");
  await page.getByRole("combobox", { name: "Model" }).click();
  await page.getByRole("option", { name: "ember-code" }).click();
  await until(async () => (await rows(page).count()) === 5, "those of the model");
  await page.reload();
  await until(async () => (await rows(page).count()) === 5, "the same after a reload");

  await visitor.go("/chats");
  await page.getByRole("combobox", { name: "Labels" }).fill("customer=c-104");
  await page.keyboard.press("Enter");
  await until(async () => (await rows(page).count()) === 1, "the one with the label");
  expect(visitor.path()).toBe("/chats?labels=customer%3Dc-104");
  await page.getByLabel("Search").fill("nobody said this");
  await page.getByRole("heading", { name: "No matching chat" }).waitFor();
  await visitor.press("Show all chats");
  await page.getByText("50 chats so far").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("keeps the focus in a chat search after the list has followed it", async () => {
  await using visitor = await arrive("/chats");
  const { page } = visitor;
  await page.getByLabel("Search").focus();
  await page.keyboard.type("LIS");
  await until(() => visitor.path() === "/chats?search=LIS", "the address");
  await page.keyboard.type("BON");
  await until(() => visitor.path() === "/chats?search=LISBON", "the rest of the word");
  expect(visitor.trouble).toEqual([]);
});

test("renders any stored chat as text without running or loading anything", async () => {
  const id = await store({
    temperature: 0.3,
    metadata: { "<b>bold</b>": "<script>alert(1)</script>" },
    tools: [{ type: "function", function: { name: "get_weather", parameters: { type: "object", properties: {} } } }],
    messages: [
      { role: "system", content: "You are <i>kind</i>." },
      {
        role: "user",
        content: [
          { type: "text", text: "<img src=x onerror=alert(1)> What is this?" },
          { type: "image_url", image_url: { url: "https://elsewhere.example/spy.png" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "```js\nrain()\n```" },
      { role: "user", content: "And now?" },
    ],
  });
  await using visitor = await arrive(`/chats/${id}`);
  const { page } = visitor;
  await drawer(page).getByText("And now?", { exact: true }).waitFor();
  const said = (await drawer(page).textContent()) ?? "";
  for (const text of [
    "<img src=x onerror=alert(1)> What is this?",
    "You are <i>kind</i>.",
    "[Picture: https://elsewhere.example/spy.png]",
    "Calls get_weather call_1",
    '"city": "Oslo"',
    "Tool (call_1)",
    "rain()",
    "temperature0.3",
  ]) {
    expect(said).toContain(text);
  }
  await look(visitor, "chats-one");
  await drawer(page).getByRole("link", { name: "Its request in Logs" }).click();
  await page.getByRole("dialog", { name: "Request" }).getByText("tokens were counted").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("edits metadata, validates it at the field, and finds chats by it", async () => {
  const id = await store({ messages: [{ role: "user", content: "Label me." }], metadata: { old: "1" } });
  await using visitor = await arrive(`/chats/${id}`, phone);
  const { page } = visitor;
  await drawer(page).getByLabel("Value of label 1").fill("2");
  await drawer(page).getByRole("button", { name: "Add a label" }).click();
  await drawer(page).getByLabel("Name of label 2").fill("old");
  await drawer(page).getByText("This name is used twice").first().waitFor();
  expect(await drawer(page).getByRole("button", { name: "Save labels" }).isDisabled()).toBe(true);
  await drawer(page).getByLabel("Name of label 2").fill("team");
  await drawer(page).getByLabel("Value of label 2").fill("north=east");
  await drawer(page).getByRole("button", { name: "Save labels" }).click();
  await page.getByText("The labels are saved.").waitFor();
  // What was saved is drawn with the next turn.
  await drawer(page).getByRole("button", { name: "Save labels" }).waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await until(() => gone(page), "the drawer is closed");
  await visitor.go("/chats?labels=team%3Dnorth%3Deast%0Aold%3D2");
  await until(async () => (await rows(page).count()) === 1, "found by both");
  expect(visitor.trouble).toEqual([]);
});

test("deletes one chat from its page and several from the list, and no others", async () => {
  const [one, kept, ...two] = await Promise.all(
    ["One", "Kept", "Two", "Three"].map((content) =>
      store({ messages: [{ role: "user", content }], metadata: { batch: "deleting" } }),
    ),
  );
  await using visitor = await arrive("/chats?labels=batch%3Ddeleting");
  const { page } = visitor;
  await rows(page).nth(3).waitFor();
  await visitor.go(`/chats/${one}?labels=batch%3Ddeleting`);
  await drawer(page).getByRole("button", { name: "Delete" }).click();
  const sure = page.getByRole("dialog", { name: "Delete the chat" });
  await sure.getByRole("button", { name: "Cancel" }).click();
  await sure.waitFor({ state: "detached" });
  expect(await isStored(one ?? "")).toBe(true);
  await drawer(page).getByRole("button", { name: "Delete" }).click();
  await sure.getByRole("button", { name: "Delete the chat" }).click();
  await until(() => gone(page), "both dialogs are closed");
  expect(visitor.path()).toBe("/chats?labels=batch%3Ddeleting");
  await until(async () => (await rows(page).count()) === 3, "it is off the list");

  await page.getByRole("checkbox", { name: "Select all listed chats" }).check();
  await page.locator(`tbody tr:has(a[href*="${kept}"])`).getByRole("checkbox").uncheck();
  await visitor.press("Delete 2");
  await page.getByRole("dialog", { name: "Delete 2 chats" }).waitFor();
  await look(visitor, "chats-delete");
  await visitor.press("Delete 2 chats");
  await page.getByText("2 of 2 chats are deleted.").waitFor();
  await until(async () => (await rows(page).count()) === 1, "they are off the list");
  expect(await Promise.all([one, kept, ...two].map((id) => isStored(id ?? "")))).toEqual([false, true, false, false]);
  expect(visitor.trouble).toEqual([]);
});

test("shows the progress of a long deletion, and stops it", async () => {
  await using visitor = await arrive("/chats");
  const { page } = visitor;
  let asked = 0;
  await page.route("**/v1/chat/completions/chatcmpl-*", async (route) => {
    if (route.request().method() === "DELETE" && ++asked === 3) {
      // The third is answered when somebody has pressed Stop.
      await page.getByText("2 of 50 deleted").waitFor();
      await visitor.press("Stop");
    }
    await route.continue();
  });
  await rows(page).first().waitFor();
  await page.getByRole("checkbox", { name: "Select all listed chats" }).check();
  await visitor.press("Delete 50");
  await visitor.press("Delete 50 chats");
  await page.getByText("3 of 50 chats are deleted.").waitFor();
  expect(asked).toBe(3);
  await until(() => gone(page), "the dialog is closed");
  expect(visitor.trouble).toEqual([]);
});

test("explains how to store chats if none are stored", async () => {
  await using visitor = await arrive("/chats", phone);
  const { page } = visitor;
  await rows(page).first().waitFor();
  await page.getByRole("combobox", { name: "Environment" }).selectOption({ label: "Test" });
  await page.getByRole("heading", { name: "No stored chats yet" }).waitFor();
  await page.getByText("First account stores only chats whose request has store: true.").waitFor();
  expect(
    await page
      .getByLabel(/^Copy for/)
      .first()
      .textContent(),
  ).toContain('"store": true');
  await look(visitor, "chats-empty");
  await visitor.go("/chats/chatcmpl-nothing");
  await page.getByText("The chat may have expired or been deleted").waitFor();
  expect(visitor.trouble.every((one) => one.includes("404"))).toBe(true);
});
