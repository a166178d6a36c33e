// In a real browser: the log of requests is filtered, scrolled through, grows by itself, and shows each of them in full.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld, plenty } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { look } from "../support/page-checks.ts";
import { completed, principalOf, toolUseFor } from "../support/tool-uses.ts";

let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 12, requests: plenty.requests, chats: 0, events: 0 });
  url = world.server.url;
}, 60_000);

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await world.signIn(visitor.context);
  // So that nobody has to wait until the page looks for newer ones.
  await visitor.page.clock.install();
  await visitor.go(path);
  return visitor;
}

const rows = (page: Page) => page.locator("tbody tr:has(a)");
const table = (page: Page) => page.getByRole("region", { name: "Requests" });
const drawer = (page: Page) => page.getByRole("dialog", { name: "Request" });
const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute("href") ?? "");

/** Makes one, and gives its id. */
async function request(body: Record<string, unknown> = {}, key = world.server.key): Promise<string> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "ember-code", messages: [{ role: "user", content: "Say hello." }], ...body }),
  });
  await answer.text();
  return answer.headers.get("x-request-id") ?? "";
}

test("lists the requests of all accounts for operators, and shows one with its account", async () => {
  await using visitor = await arrive("/requests");
  const { page } = visitor;
  await rows(page).first().waitFor();
  await page.getByRole("combobox", { name: "Accounts" }).selectOption("All accounts");
  await rows(page).filter({ hasText: "First account" }).first().waitFor();
  await look(visitor, "logs of all accounts");
  await page.getByRole("combobox", { name: "Account", exact: true }).click();
  await page.getByRole("listbox").getByRole("option", { name: "First account" }).click();
  await until(() => visitor.path().startsWith("/requests?of=all&account=acct_"), "the account in the address");
  await rows(page).first().getByRole("link").first().click();
  await drawer(page).getByText("Timeline").or(drawer(page).getByText("Details")).first().waitFor();
  expect(visitor.path()).toMatch(/^\/requests\/req_.*of=all/);
});

test("keeps request filters in the address after a reload", async () => {
  await using visitor = await arrive("/requests");
  const { page } = visitor;
  await rows(page).first().waitFor();
  await look(visitor, "logs");
  await page.getByLabel("Outcome").selectOption({ label: "Failed" });
  await page.getByLabel("Streamed").selectOption({ label: "Streamed" });
  await page.getByRole("combobox", { name: "Model" }).click();
  await page.getByRole("option", { name: "gale-preview" }).click();
  await page.getByLabel("Time").selectOption({ label: "Last 30 days" });
  await until(
    () => visitor.path() === "/requests?outcome=failed&stream=true&model=gale-preview&range=30d",
    "the address",
  );
  for (const visit of ["first", "reloaded"]) {
    await rows(page).first().waitFor();
    await until(
      async () => (await rows(page).filter({ hasNotText: "gale-preview" }).count()) === 0,
      `only those, ${visit}`,
    );
    expect(await rows(page).filter({ hasNotText: "upstream_error" }).count()).toBe(0);
    expect(await rows(page).filter({ hasNotText: "Chat, streamed" }).count()).toBe(0);
    await page.reload();
  }
  expect(visitor.trouble).toEqual([]);
});

test("saves filters under a name in this browser, and exports the filtered requests as CSV", async () => {
  await using visitor = await arrive("/requests?outcome=failed&model=gale-preview&range=7d");
  const { page } = visitor;
  await rows(page).first().waitFor();
  await visitor.press("Saved filters");
  await page.getByRole("menuitem", { name: "Save or remove filters" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Gale fails");
  await look(visitor, "logs-save-filters");
  await visitor.press("Save");
  await visitor.go("/requests");
  await rows(page).first().waitFor();
  await visitor.press("Saved filters");
  await page.getByRole("menuitem", { name: "Gale fails" }).click();
  await page.waitForURL("**/requests?outcome=failed&model=gale-preview&range=7d");
  await until(async () => (await rows(page).filter({ hasNotText: "gale-preview" }).count()) === 0, "only those");
  const [file] = await Promise.all([page.waitForEvent("download"), visitor.press("Export CSV")]);
  expect(file.suggestedFilename()).toMatch(/^headrace-logs-\d{4}-\d\d-\d\d\.csv$/);
  const [head, ...lines] = readFileSync(await file.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  expect(head).toStartWith("id,at,operation,model,key,");
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) expect(line).toMatch(/^req_[^,]+,20[^,]+Z,[^,]+,gale-preview,.*,failed,/);
  await page.getByText(`${lines.length} requests.`).waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("filters requests by time in the reader's zone, and shows all again from an empty range", async () => {
  await using visitor = await arrive("/requests?start=1000000000&end=1000003600", phone);
  const { page } = visitor;
  await page.getByRole("heading", { name: "No matching request" }).waitFor();
  expect(await page.getByLabel("From", { exact: true }).inputValue()).toBe("2001-09-09T01:46");
  expect(await page.getByRole("switch", { name: "Auto-refresh" }).isDisabled()).toBe(true);
  await look(visitor, "logs-none");
  await visitor.press("Show all requests");
  await rows(page).first().waitFor();
  expect(visitor.path()).toBe("/requests");
});

test("scrolls ten thousand requests to the end, with a few dozen rows drawn at a time", async () => {
  await using visitor = await arrive("/requests");
  const { page } = visitor;
  await rows(page).first().waitFor();
  const whole = page.getByText(/^10,\d\d\d requests in total/);
  let most = 0;
  await until(
    async () => {
      const drawn = await table(page).evaluate((element) => {
        element.scrollTop = element.scrollHeight;
        return element.querySelectorAll("tbody tr").length;
      });
      most = Math.max(most, drawn);
      return (await whole.count()) > 0;
    },
    "the end",
    60_000,
  );
  expect(most).toBeLessThan(60);
  // In one frame after the other, not in leaps that nobody could follow; half of them may be late on a busy machine.
  const middling = await table(page).evaluate(async (element) => {
    const times: number[] = [];
    for (let step = 0; step < 60; step++) {
      const before = performance.now();
      element.scrollTop -= 400;
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - before);
    }
    return times.sort((a, b) => a - b)[30];
  });
  expect(middling).toBeLessThan(withinMs(100));
  expect(visitor.trouble).toEqual([]);
}, 90_000);

test("adds a finished request by itself, and notifies a reader further down without moving the list", async () => {
  await using visitor = await arrive("/requests?model=ember-code");
  const { page } = visitor;
  await rows(page).first().waitFor();
  const id = await request();
  await page.clock.fastForward(5_000);
  await rows(page).first().locator(`a[href*="${id}"]`).waitFor();

  await table(page).evaluate((element) => {
    element.scrollTop = 1_000;
  });
  await page.waitForTimeout(100);
  const above = await rows(page).nth(12).textContent();
  const later = await request();
  await page.clock.fastForward(5_000);
  const newRequests = page.getByRole("button", { name: "1 new" });
  await newRequests.waitFor();
  expect(await table(page).evaluate((element) => element.scrollTop)).toBe(1_000);
  expect(await rows(page).nth(12).textContent()).toBe(above);
  await look(visitor, "logs-newer");
  await newRequests.click();
  await rows(page).first().locator(`a[href*="${later}"]`).waitFor();

  await page.getByRole("switch", { name: "Auto-refresh" }).click({ force: true });
  const unseen = await request();
  await page.clock.fastForward(20_000);
  await page.waitForTimeout(200);
  expect(await page.locator(`a[href*="${unseen}"]`).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("opens a request by keyboard, describes its times, and returns to the same row", async () => {
  await using visitor = await arrive("/requests?outcome=completed&stream=true");
  const { page } = visitor;
  const link = rows(page).nth(3).locator("a");
  const href = (await link.getAttribute("href")) ?? "";
  await link.focus();
  await page.keyboard.press("Enter");
  await drawer(page).getByText("tokens were counted").waitFor();
  expect(visitor.path()).toBe(href);
  const said = (await drawer(page).textContent()) ?? "";
  expect(said).toMatch(
    /Queue.*To first token.*The first token came [\d.]+ m?s after the start.*Stream.*End.*tokens were counted/s,
  );
  expect(said).toContain("The content was not stored");
  await drawer(page).getByRole("button", { name: "Copy the id of the request" }).click();
  expect(href).toContain(await page.evaluate(() => navigator.clipboard.readText()));
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });
  expect(visitor.path()).toBe("/requests?outcome=completed&stream=true");
  await until(async () => (await focused(page)) === href, "focus is where it was");

  // Which models the latest requests were for is left to chance.
  await rows(page).filter({ hasText: "aurora" }).first().locator("a").first().click();
  await drawer(page).getByText("tokens were counted").waitFor();
  await look(visitor, "logs-one");
  await drawer(page).getByRole("link", { name: "aurora" }).first().click();
  await until(() => /^\/requests\?model=aurora-(mini|large)$/.test(visitor.path()), "only those of its model");
  expect(visitor.trouble).toEqual([]);
});

test("marks a cached answer in words, and no other", async () => {
  const made = await world.server.request("/v1/keys", { body: { name: "kept", response_cache: "on" } });
  const { key } = (await made.json()) as { key: string };
  const ids = [await request({ temperature: 0 }, key), await request({ temperature: 0 }, key)];
  await world.server.governance.ledger.flush();
  await using visitor = await arrive(`/requests/${ids[1]}`);
  const { page } = visitor;
  await drawer(page).getByText("This answer came from the response cache, and no model was called.").waitFor();
  await visitor.go(`/requests/${ids[0]}`);
  await drawer(page).getByText("tokens were counted").waitFor();
  expect(await drawer(page).textContent()).not.toContain("response cache");
});

test("links a stored request to its chat, explains a failed one and a missing one", async () => {
  const stored = await request({ store: true });
  const failed = await request({ model: "gale-preview" });
  await using visitor = await arrive(`/requests/${stored}`, phone);
  const { page } = visitor;
  await drawer(page).getByRole("link", { name: "Open the stored chat" }).click();
  await page.getByRole("dialog", { name: "Stored chat" }).getByText("Say hello.", { exact: true }).waitFor();

  await visitor.go(`/requests/${failed}`);
  await drawer(page).getByText("All model servers for this model failed.").waitFor();
  await look(visitor, "logs-failed");

  await visitor.go("/requests/req_nothing");
  await drawer(page).getByText("The request may still be running").waitFor();
  expect(visitor.trouble.every((one) => one.includes("404"))).toBe(true);
  await page.keyboard.press("Escape");
  await rows(page).first().waitFor();
});

test("opens a pasted request id with attempts or the refusal in words and a remedy", async () => {
  const failed = await request({ model: "gale-preview" });
  const refused = await request({ model: "no-such-model" });
  const wrong = await request({ temperature: 9 });
  await using visitor = await arrive("/requests?range=1h");
  const { page } = visitor;
  await rows(page).first().waitFor();
  const field = page.getByRole("textbox", { name: "Open a request by its id" });
  const paste = async (text: string) => {
    await page.evaluate((clip) => navigator.clipboard.writeText(clip), text);
    await field.focus();
    await page.keyboard.press("ControlOrMeta+v");
  };
  await paste(`x-request-id: ${failed}`);
  await drawer(page).getByRole("heading", { name: "Attempts" }).waitFor();
  expect(visitor.path()).toBe(`/requests/${failed}?range=1h`);
  const tried = (await drawer(page).textContent()) ?? "";
  expect(tried).toMatch(/Model server 1 of \d+: \w+.*Failed with \d\d\d.*The server answered with an error\./s);
  expect(tried).not.toContain("Nobody");
  await look(visitor, "logs-trail");
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });

  await field.fill(refused);
  await page.keyboard.press("Enter");
  await drawer(page).getByText("404 model_not_found").waitFor();
  await drawer(page).getByText("The model `no-such-model` does not exist").waitFor();
  expect(await drawer(page).getByText("What to do:").count()).toBe(1);
  expect(await drawer(page).getByText("Timeline").count()).toBe(0);
  await look(visitor, "logs-refused");
  await drawer(page).getByRole("link", { name: "Models" }).click();
  await until(() => visitor.path() === "/catalog", "the page of models");
  await page.getByRole("heading", { name: "Models", exact: true }).first().waitFor();

  await visitor.go("/requests?outcome=refused");
  await rows(page).filter({ hasText: "Refused" }).filter({ hasText: "model_not_found" }).first().waitFor();
  expect(await rows(page).locator(`a[href*="${wrong}"]`).count()).toBe(1);
  await look(visitor, "logs-refused-list");
  await field.fill("chatcmpl-123");
  await page.keyboard.press("Enter");
  await page.getByText("This is not a request id").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("reports progress of a long search without results, stops, and resumes on request", async () => {
  await using visitor = await openVisitor({ at: url });
  const { page } = visitor;
  await world.signIn(visitor.context);
  let pages = 0;
  const start = Date.UTC(2026, 10, 20) / 1000;
  // Hundreds of millions of records, as far as a browser can tell.
  await page.route("**/v1/requests?**", (route) => {
    const query = new URL(route.request().url()).searchParams;
    const isNewest = pages > 0 && !query.has("cursor");
    if (isNewest) return route.fulfill({ json: { object: "list", data: [], next: null, searched_to: null } });
    pages++;
    return route.fulfill({
      json: { object: "list", data: [], next: `page-${pages}`, searched_to: start - pages * 3_600 },
    });
  });
  await visitor.go("/requests?outcome=interrupted");
  await page.getByRole("heading", { name: /^Nothing found back to Nov 18, 8:00:00 AM/ }).waitFor();
  expect(pages).toBe(40);
  await look(visitor, "logs-search");
  await visitor.press("Search further back");
  await page.getByRole("heading", { name: /^Nothing found back to Nov 16, 4:00:00 PM/ }).waitFor();
  expect(pages).toBe(80);
  expect(visitor.trouble).toEqual([]);
});

test("shows a tool call by server and tool, with its bytes and any stored arguments and result", async () => {
  const { server } = world;
  const principal = await principalOf(server, server.key);
  const use = toolUseFor(principal, { name: "search_issues" });
  await (await server.tools.toolUses.begin(use)).ended({ ...completed, isError: true });
  await server.governance.toolContents.insert([
    {
      ...{ requestId: use.requestId, accountId: principal.account.id, environment: principal.environment },
      ...{ appId: null, personId: null, expiresAt: 4_000_000_000 },
      ...{ arguments: '{"query":"open bugs"}', result: '{"content":[],"isError":true}' },
    },
  ]);
  await using visitor = await arrive(`/requests/${use.requestId}`);
  const { page } = visitor;
  for (const text of ["github/search_issues", "Tool call"]) {
    await drawer(page).getByText(text, { exact: true }).first().waitFor();
  }
  for (const [label, text] of [
    ["Arguments", '"query": "open bugs"'],
    ["Result", '"isError": true'],
  ] as const) {
    await drawer(page).getByLabel(label, { exact: true }).getByText(text).waitFor();
  }
  await drawer(page).getByText("Failed results").waitFor();
  await look(visitor, "log-tool");
  expect(visitor.trouble).toEqual([]);
});
