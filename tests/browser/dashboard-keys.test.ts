// In a real browser: API keys are made and shown once, found among many, changed, rotated and revoked.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld, plenty } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { unfold } from "../support/unfold.ts";

const place = "/settings/api-keys";
let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: plenty.keys, requests: 3_000, chats: 0, events: 0 });
  url = world.server.url;
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const dialog = (page: Page) => page.getByRole("dialog");
const field = (page: Page, name: string) => dialog(page).getByRole("textbox", { name, exact: true });
const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText());
const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? "");
const status = async (key: string) =>
  (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;

async function make(visitor: Visitor, name: string): Promise<string> {
  const { page } = visitor;
  await visitor.press("Create API key");
  await field(page, "Name").fill(name);
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const key = await copied(page);
  await visitor.press("Done");
  await dialog(page).waitFor({ state: "detached" });
  return key;
}

test("creates a key with the chosen settings, shows it once, and makes a first call with its snippet", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await visitor.press("Create API key");
  await field(page, "Name").fill(`Ada's "shop"`);
  await unfold(page, "More settings", "Other limits", "Network");
  await page.getByRole("checkbox", { name: "Read stored chats" }).uncheck();
  await page.getByText("30 days", { exact: true }).click();
  await page.getByRole("combobox", { name: "Allowed IP addresses" }).pressSequentially("127.0.0.1 2001:db8::/32,");
  await field(page, "Requests").fill("60");
  await page.getByRole("combobox", { name: "Time for the request limit" }).selectOption({ label: "/ hour" });
  await field(page, "Tokens per month").fill("1000000");
  await field(page, "Spend per month").fill("12.5");
  await look(visitor, "keys-create");
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const key = await copied(page);
  expect(key).toMatch(/^sk_dev_hr_\w{36}$/);
  await page.getByRole("tab", { name: "curl" }).click();
  await look(visitor, "keys-made");
  await visitor.press("Copy for curl");
  const asked = Bun.spawn(["sh", "-c", `${await copied(page)} --fail --silent --max-time 10`]);
  expect(await new Response(asked.stdout).text()).toContain("data: [DONE]");
  await visitor.press("Done");

  await page.getByRole("link", { name: `Ada's "shop"` }).click();
  await page.getByText("127.0.0.1", { exact: true }).waitFor();
  const said = await page.locator("main").textContent();
  for (const text of ["60 requests in 1 h", "1,000,000", "$12.50", "2001:db8::/32", key.slice(-4), "in 30 days"]) {
    expect(said).toContain(text);
  }
  expect(said).not.toContain("Read stored chats");
  expect(await page.content()).not.toContain(key);
  expect(visitor.trouble).toEqual([]);
});

test("shows the setup of each client for a new key, with the secret only where it is already shown", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await visitor.press("Create API key");
  await field(page, "Name").fill("agent");
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const key = await copied(page);
  await page.getByRole("tab", { name: "Claude Code" }).click();
  await visitor.press("Copy the configuration of Claude Code");
  const { env } = JSON.parse(await copied(page)) as { env: Record<string, string> };
  expect(env).toMatchObject({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key });
  const model = String(env["ANTHROPIC_MODEL"]);
  const count = { model, messages: [{ role: "user", content: "Hi" }] };
  const asked = await fetch(`${env["ANTHROPIC_BASE_URL"]}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${env["ANTHROPIC_AUTH_TOKEN"]}`, "content-type": "application/json" },
    body: JSON.stringify(count),
  });
  expect(asked.status).toBe(200);
  await look(visitor, "keys-made-clients");
  await visitor.press("Done");
  await page.getByRole("link", { name: "agent", exact: true }).click();
  await page.getByRole("tab", { name: "Codex" }).click();
  await visitor.press("Copy the configuration of Codex");
  expect(Bun.TOML.parse(await copied(page))).toMatchObject({
    model,
    model_providers: { headrace: { base_url: `${url}/v1`, env_key: "HEADRACE_API_KEY" } },
  });
  await visitor.press("Copy the command for Codex");
  expect(await copied(page)).toBe(
    `export HEADRACE_BASE_URL=${url}/v1\nexport HEADRACE_API_KEY=YOUR_KEY\nheadrace connect codex --write --model ${model}`,
  );
  await visitor.press("Copy the variables of Codex");
  expect(await copied(page)).toBe("export HEADRACE_API_KEY=YOUR_KEY");
  await look(visitor, "key-clients");
  expect(await page.content()).not.toContain(key);
  expect(visitor.trouble).toEqual([]);
});

test("restores the scroll position on Back without a request, and starts at the top from a link", async () => {
  await using visitor = await arrive(`${place}?status=active`);
  const { page } = visitor;
  const list = page.getByRole("region", { name: "API keys" });
  const offset = () => list.evaluate((element) => element.scrollTop);
  const links = page.locator("tbody a");
  await links.first().waitFor();
  let asked = 0;
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/v1/keys") asked++;
  });
  // Seven pages, as a list that is longer is not asked for anew.
  await until(
    async () => {
      await list.evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
      return asked >= 6;
    },
    "further pages",
    20_000,
  );
  await list.evaluate((element) => element.scrollTo({ top: 25_000 }));
  const name = `tbody tr[aria-rowindex="420"] a`;
  await page.locator(name).waitFor();
  const [text, href] = [await page.locator(name).textContent(), await page.locator(name).getAttribute("href")];
  await until(async () => (await page.getByLabel("Loading more").count()) === 0, "quiet");
  const before = asked;
  await page.locator(name).click();
  await page.getByRole("heading", { level: 1, name: text ?? "" }).waitFor();
  expect(visitor.path()).toBe(href ?? "");
  // The page itself is not moved to its top, either.
  await page.evaluate(() => {
    window.scrollTo = () => void performance.mark("moved");
  });
  await page.goBack();
  await page.locator(name).waitFor();
  expect(await page.evaluate(() => performance.getEntriesByName("moved").length)).toBe(0);
  expect([await offset(), await page.locator(name).textContent(), asked]).toEqual([25_000, text, before]);

  // A link leads to another entry of the history, whose beginning is shown.
  await page.goForward();
  await page.getByRole("heading", { level: 1, name: text ?? "" }).waitFor();
  await page.getByRole("link", { name: "All keys" }).click();
  await links.first().waitFor();
  expect(await offset()).toBe(0);
  await page.goBack();
  await page.goBack();
  await page.locator(name).waitFor();
  expect(await offset()).toBe(25_000);
  await page.reload();
  await links.first().waitFor();
  expect(await offset()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("shows an error at its field and moves the focus there", async () => {
  await using visitor = await arrive(`${place}?create=1`);
  const { page } = visitor;
  await unfold(page, "More settings", "Network");
  await page.getByRole("combobox", { name: "Allowed IP addresses" }).pressSequentially("203.0.113.300,");
  await visitor.press("Create key");
  await page.getByText("Enter a name, such as the program").waitFor();
  await page.getByText("203.0.113.300 is not an IPv4 or IPv6 address").waitFor();
  await expect(field(page, "Name").evaluate((input) => input === document.activeElement)).resolves.toBe(true);
  await page.keyboard.type("sk_dev_hr_0123456789ABCDEFGHIJ");
  await page.getByRole("button", { name: "Remove" }).or(dialog(page).locator(".mantine-Pill-remove")).first().click();
  const refused = page.waitForResponse((response) => response.request().method() === "POST");
  await visitor.press("Create key");
  expect((await refused).status()).toBe(400);
  await page.getByText("Holds a whole API key").waitFor();
  expect(visitor.trouble).toEqual([expect.stringContaining("400 for"), expect.stringContaining("400")]);
});

test("explains an environment without keys, and creates a key for another one from there", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await page.evaluate(() => localStorage.setItem("headrace-environment", "test"));
  await page.reload();
  await page.getByRole("heading", { name: "Create the first API key" }).waitFor();
  await look(visitor, "keys-empty");
  await page.getByRole("button", { name: "Create API key" }).first().click();
  await field(page, "Name").fill("Elsewhere");
  await unfold(page, "More settings");
  await dialog(page).getByRole("combobox", { name: "Environment" }).selectOption({ label: "Development" });
  await visitor.press("Create key");
  await page.getByText("The key belongs to Development.").waitFor();
  await visitor.press("Copy the key");
  expect(await copied(page)).toStartWith("sk_dev_hr_");
  expect(visitor.trouble).toEqual([]);
});

test("finds one of ten thousand keys by name and status, with a shareable address", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await page.getByRole("searchbox", { name: "Search keys" }).fill("worker 0123");
  await page.waitForURL(`**${place}?search=worker+0123`);
  await page.getByRole("combobox", { name: "State" }).selectOption({ label: "Active" });
  await page.waitForURL(`**${place}?search=worker+0123&status=active`);
  await page.getByText(/^[\d,]+ in total$/).waitFor();
  const names = await page.locator("tbody a").allInnerTexts();
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) expect(name).toStartWith("Worker 0123");
  await page.reload();
  await page.getByText(/^[\d,]+ in total$/).waitFor();
  expect(await page.locator("tbody a").allInnerTexts()).toEqual(names);
  await page.getByRole("searchbox", { name: "Search keys" }).fill("nothing has this name");
  await visitor.press("Show all keys");
  await page.getByText("more as you scroll").waitFor();
  expect(visitor.path()).toBe(place);
  expect(await page.getByRole("searchbox", { name: "Search keys" }).inputValue()).toBe("");
  expect(visitor.trouble).toEqual([]);
});

test("draws only visible rows and requests the usage of all keys once, however far one scrolls", async () => {
  // From a page that asks for no usage, and can be late with none.
  await using visitor = await arrive("/settings/security");
  const { page } = visitor;
  const asked: string[] = [];
  page.on("request", (request) => void asked.push(new URL(request.url()).pathname));
  await visitor.go(place);
  const table = page.getByRole("region", { name: "API keys" });
  await table.locator("tbody a").first().waitFor();
  await look(visitor, "keys-list");
  for (let step = 0; step < 6; step++) {
    const before = await table.evaluate((box) => box.scrollHeight);
    await table.evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await page.waitForFunction(([height]) => (document.querySelector(".long-table")?.scrollHeight ?? 0) > height, [
      before,
    ] as const);
  }
  expect(await table.locator("tbody a").count()).toBeLessThan(60);
  // One report of the requests by day, and one of the month's spend.
  expect(asked.filter((path) => path === "/v1/usage")).toHaveLength(2);
  expect(asked.filter((path) => path.startsWith("/v1/keys/"))).toEqual([]);
  expect(visitor.trouble).toEqual([]);
});

test("changes a key and sends only the changed fields", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await make(visitor, "Before");
  await page.getByRole("link", { name: "Before" }).click();
  await look(visitor, "keys-one");
  await visitor.press("Edit");
  await field(page, "Name").fill("After");
  await unfold(page, "More settings", "Other limits");
  await field(page, "Requests").fill("5");
  await look(visitor, "keys-edit");
  const sent = page.waitForRequest((request) => request.method() === "PATCH");
  await visitor.press("Save");
  expect((await sent).postDataJSON()).toEqual({ name: "After", rate_limit: 5, rate_limit_window: 60 });
  await page.getByRole("heading", { name: "After", level: 1 }).waitFor();
  await page.getByText("5 requests in 1 min").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("creates a key with models, tags, a note and the setting that its requests stay local", async () => {
  await using visitor = await arrive(`${place}?create=1`);
  const { page } = visitor;
  await field(page, "Name").fill("Batch");
  await unfold(page, "More settings", "Models", "Tags and note");
  const typed = (name: string) => dialog(page).getByRole("combobox", { name, exact: true });
  await typed("Models").pressSequentially("qwen*, a*b,");
  await page.getByRole("switch", { name: "Keep requests on local servers" }).click();
  await typed("Tags").pressSequentially("team-a env:prod,");
  await field(page, "Note").fill("For the night batch.");
  await visitor.press("Create key");
  await page.getByText("a*b is not a model id or a prefix").waitFor();
  await look(visitor, "keys-create-reach");
  await dialog(page).locator(".mantine-Pill-remove").nth(1).click();
  const made = page.waitForRequest((request) => request.method() === "POST");
  await visitor.press("Create key");
  expect((await made).postDataJSON()).toMatchObject({
    ...{ models: ["qwen*"], never_leaves: true, tags: ["team-a", "env:prod"], note: "For the night batch." },
  });
  await page.getByText("has no model that can chat with this key yet").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("shows, changes and clears a key's models, tags, note and local setting", async () => {
  const what = {
    models: ["qwen*"],
    never_leaves: true,
    tags: ["team-a", "env:prod"],
    note: "For the batch.\nAsk Ada.",
  };
  const made = await world.server.request("/v1/keys", { body: { name: "Nightly", ...what } });
  const { id } = (await made.json()) as { id: string };
  await using visitor = await arrive(`${place}/${id}`);
  const { page } = visitor;
  await page.getByText("Local servers only").waitFor();
  const said = await page.locator("main").textContent();
  for (const text of ["qwen*", "env:prod", "team-a", "Ask Ada."]) expect(said).toContain(text);
  await look(visitor, "keys-one-reach");
  await visitor.press("Edit");
  await dialog(page).getByText("qwen*, local servers only; env:prod, team-a, a note", { exact: true }).waitFor();
  await unfold(page, "More settings");
  await dialog(page).getByText("qwen*, local servers only", { exact: true }).waitFor();
  await dialog(page).getByText("env:prod, team-a, a note", { exact: true }).waitFor();
  await unfold(page, "Models", "Tags and note");
  await dialog(page).locator(".mantine-Pill-remove").first().click();
  await page.getByRole("switch", { name: "Keep requests on local servers" }).click();
  await field(page, "Note").fill("");
  const sent = page.waitForRequest((request) => request.method() === "PATCH");
  await visitor.press("Save");
  expect((await sent).postDataJSON()).toEqual({ models: null, never_leaves: false, note: null });
  await page.locator("main").getByText("all models of the environment", { exact: true }).waitFor();
  expect(await page.locator("main").textContent()).not.toContain("Ask Ada");
  expect(visitor.trouble).toEqual([]);
});

test("shows the new-key dialog's buttons without scrolling on phone, tablet and desktop", async () => {
  await using visitor = await arrive(`${place}?create=1`);
  const { page } = visitor;
  await field(page, "Name").waitFor();
  const check = async (size: { width: number; height: number }) => {
    await page.setViewportSize(size);
    for (const name of ["Create key", "Cancel"]) {
      const button = dialog(page).getByRole("button", { name, exact: true });
      // Also a button behind another element, or out of the dialog's own view, is not in view.
      const isInView = await button.evaluate((element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const isOnScreen = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
        return isOnScreen && element.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
      });
      expect([size.width, name, isInView]).toEqual([size.width, name, true]);
    }
  };
  const sizes = [phone, { width: 768, height: 1024 }, { width: 1440, height: 900 }];
  for (const size of sizes) await check(size);
  await look(visitor, "keys-create-folded");
  await unfold(page, "More settings", "Models", "Other limits", "Network", "Tags and note");
  for (const size of sizes) await check(size);
  expect(visitor.trouble).toEqual([]);
});

test("grants the permissions of the chosen preset, without the operation of the server unless it is ticked", async () => {
  await using visitor = await arrive(`${place}?create=1`);
  const { page } = visitor;
  const choose = (name: string) => dialog(page).getByText(name, { exact: true }).click();
  const boxes = dialog(page).getByRole("checkbox");
  await field(page, "Name").fill("Preset");
  await choose("All");
  expect(await boxes.count()).toBe(0);
  await choose("Restricted");
  const ticked = await boxes.evaluateAll((all) =>
    all.flatMap((box) => (box instanceof HTMLInputElement && box.checked ? [box.value] : [])),
  );
  expect(ticked).toHaveLength((await boxes.count()) - 1);
  expect(ticked).not.toContain("admin:manage");
  await choose("Read only");
  await dialog(page).getByText("See models, See usage", { exact: true }).waitFor();
  const made = page.waitForRequest((request) => request.method() === "POST");
  await visitor.press("Create key");
  expect((await made).postDataJSON()).toMatchObject({ scopes: ["models:read", "usage:read"] });
  await visitor.press("Done");
  expect(visitor.trouble).toEqual([]);
});

test("confirms before discarding a half-filled key form, and closes an empty one at once", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  const form = page.getByRole("dialog", { name: "Create API key" });
  const question = page.getByRole("dialog", { name: "Discard your changes?" });
  const open = () => visitor.press("Create API key");
  const ways = [
    () => page.keyboard.press("Escape"),
    () => page.mouse.click(5, 5),
    () => form.getByRole("button", { name: "Cancel" }).click(),
    () => form.getByRole("button", { name: "Close" }).click(),
  ];
  for (const leave of ways) {
    await open();
    await form.waitFor();
    await unfold(page, "More settings");
    await leave();
    await form.waitFor({ state: "detached" });
  }
  await open();
  await field(page, "Name").fill("Half");
  for (const leave of ways) {
    await leave();
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await field(page, "Name").inputValue()).toBe("Half");
  }
  await page.keyboard.press("Escape");
  await look(visitor, "keys-create-discard");
  await visitor.press("Keep editing");
  await question.waitFor({ state: "detached" });
  expect(await field(page, "Name").inputValue()).toBe("Half");
  await page.keyboard.press("Escape");
  await visitor.press("Discard");
  await form.waitFor({ state: "detached" });
  await until(async () => (await focused(page)) === "Create API key", "the focus is back at the button");
  await open();
  expect(await field(page, "Name").inputValue()).toBe("");
  // A choice alone counts, too.
  await unfold(page, "More settings", "Other limits");
  await visitor.press("Add a quota");
  await page.keyboard.press("Escape");
  await visitor.press("Discard");
  await form.waitFor({ state: "detached" });
  expect(visitor.trouble).toEqual([]);
});

test("sends every setting of a new key, and opens a folded section at a field with an error", async () => {
  await using visitor = await arrive(`${place}?create=1`);
  const { page } = visitor;
  const typed = (name: string) => dialog(page).getByRole("combobox", { name, exact: true });
  await field(page, "Name").fill("All");
  await field(page, "Spend per month").fill("7.5");
  await page.getByText("Never", { exact: true }).first().click();
  await page.getByRole("checkbox", { name: /^Use tools/ }).check();
  await unfold(page, "More settings", "Models", "Tools", "Other limits", "Network", "Tags and note");
  await dialog(page).getByRole("combobox", { name: "Environment" }).selectOption({ label: "Test" });
  await dialog(page).getByLabel("Tools", { exact: true }).selectOption({ label: "None" });
  await typed("Models").pressSequentially("qwen*,");
  await page.getByRole("switch", { name: "Keep requests on local servers" }).click();
  await typed("Priority").selectOption({ label: "Low" });
  await typed("Cache responses").selectOption({ label: "Never" });
  await field(page, "Requests").fill("60");
  await typed("Time for the request limit").selectOption({ label: "/ hour" });
  await field(page, "Tokens per month").fill("1000000");
  await visitor.press("Add a quota");
  await field(page, "Amount").fill("5");
  await typed("Allowed IP addresses").pressSequentially("203.0.113.300,");
  await typed("Tags").pressSequentially("team-a,");
  await field(page, "Note").fill("For the batch.");
  for (const name of ["Models", "Tools", "Other limits", "Network", "Tags and note"]) {
    await dialog(page).getByRole("button", { name, exact: true, expanded: true }).click();
  }
  for (const summary of [
    "No tools",
    "qwen*, local servers only, low priority, responses never cached",
    "60 requests in 1 h, 1M tokens a month, 1 quota",
    "team-a, a note",
  ]) {
    await dialog(page).getByText(summary, { exact: true }).waitFor();
  }
  await visitor.press("Create key");
  await page.getByText("203.0.113.300 is not an IPv4 or IPv6 address").waitFor();
  const isThere = await typed("Allowed IP addresses").evaluate((input) => input === document.activeElement);
  expect(isThere).toBe(true);
  await page.keyboard.press("Backspace");
  await page.keyboard.type("127.0.0.1,");
  const made = page.waitForRequest((request) => request.method() === "POST");
  await visitor.press("Create key");
  const request = await made;
  expect(request.headers()["headrace-environment"]).toBe("test");
  expect(request.postDataJSON()).toMatchObject({
    ...{ name: "All", expires_at: null, allowed_ips: ["127.0.0.1"], monthly_spend: 7.5, monthly_tokens: 1_000_000 },
    ...{ models: ["qwen*"], tools: [], never_leaves: true, priority: "low", response_cache: "off" },
    ...{ rate_limit: 60, rate_limit_window: 3_600, tags: ["team-a"], note: "For the batch." },
    scopes: expect.arrayContaining(["chat:write", "tools:use"]) as unknown as string[],
    quotas: [expect.objectContaining({ amount: 5 }) as unknown],
  });
  await visitor.press("Copy the key");
  expect(visitor.trouble).toEqual([]);
});

test("keeps a rotated key for the chosen overlap, and shows the new one once", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  const old = await make(visitor, "Turning");
  await page.getByRole("link", { name: "Turning" }).click();
  await visitor.press("Rotate");
  await page.getByRole("combobox", { name: "Keep the old key working" }).selectOption({ label: "for 7 days" });
  await look(visitor, "keys-rotate");
  await visitor.press("Rotate the key");
  await page.getByText("Replace the old key before then").waitFor();
  expect(await focused(page)).toBe("Copy the key");
  await page.keyboard.press("Escape");
  await visitor.press("Copy the key");
  const fresh = await copied(page);
  expect(fresh).not.toBe(old);
  expect([await status(old), await status(fresh)]).toEqual([200, 200]);
  const before = visitor.path();
  await visitor.press("Done");
  await page.waitForFunction((path) => window.location.pathname !== path, before);
  await page.getByText(fresh.slice(-4)).waitFor();
  await page.goBack();
  await page.getByText("(rotated)").waitFor();
  expect(await page.getByRole("button", { name: "Rotate" }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("suspends and resumes a key on its page, and sets rotation schedules of the key and the account", async () => {
  const body = { name: "Paused", scopes: ["models:read"] };
  const made = (await world.browser.ask("/v1/keys", { method: "POST", body })) as { id: string; key: string };
  await using visitor = await arrive(`/settings/api-keys/${made.id}`);
  const { page } = visitor;
  const confirm = (name: string) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
  await visitor.press("Suspend");
  await look(visitor, "keys-suspend");
  await confirm("Suspend key");
  await page.getByText("Suspended", { exact: true }).waitFor();
  await look(visitor, "keys-suspended");
  expect(await status(made.key)).toBe(401);
  await visitor.press("Resume");
  await confirm("Resume key");
  await page.getByText("Active", { exact: true }).waitFor();
  expect(await status(made.key)).toBe(200);

  await page.getByText("This key has no rotation schedule.").waitFor();
  await visitor.press("Change the rotation schedule");
  await page.getByLabel("Rotate every, days").fill("90");
  await page.getByLabel("Overlap, hours").fill("48");
  await look(visitor, "keys-schedule-form");
  await confirm("Save");
  await page.getByText("This key is rotated every 90 days").waitFor();
  await look(visitor, "keys-schedule");
  expect(await world.browser.ask(`/v1/keys/${made.id}/rotation`)).toMatchObject({
    every_days: 90,
    overlap_seconds: 172_800,
  });

  await visitor.go("/settings/api-keys");
  await page.getByText("The account has no rotation schedule.").waitFor();
  await look(visitor, "keys-account-schedule");
  await visitor.press("Change the rotation schedule");
  await page.getByLabel("Rotate every, days").fill("365");
  await confirm("Save");
  await page.getByText("All keys of the account are rotated every 365 days").waitFor();
  await visitor.press("Change the rotation schedule");
  await page.getByLabel("Rotate every, days").fill("");
  await confirm("Save");
  await page.getByText("The account has no rotation schedule.").waitFor();
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("names the keys that end with a revocation, and revokes at once by keyboard alone", async () => {
  await using visitor = await arrive(place, undefined, phone);
  const { page } = visitor;
  await visitor.press("Create API key");
  await field(page, "Name").fill("Parent");
  await page.getByRole("checkbox", { name: "Manage keys and apps" }).check();
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const key = await copied(page);
  await visitor.press("Done");
  const made = await fetch(`${url}/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Its child" }),
  });
  const child = ((await made.json()) as { key: string }).key;
  await page.getByRole("link", { name: "Parent" }).click();
  await page.getByRole("button", { name: "Revoke" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("1 key created by this key is revoked as well").waitFor();
  await page.getByText(`Its child (sk_dev_hr_…${child.slice(-4)})`).waitFor();
  await look(visitor, "keys-revoke");
  expect(await focused(page)).toBe("Cancel");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator("main").getByText("Revoked", { exact: true }).waitFor();
  expect([await status(key), await status(child)]).toEqual([401, 401]);
  expect(await page.getByRole("button", { name: "Edit" }).count()).toBe(0);
  await look(visitor, "keys-revoked");
});

test("sorts all keys by spend, last use and name, with the order in the address", async () => {
  await using visitor = await arrive(`${place}?search=worker+01`);
  const { page } = visitor;
  const column = (at: number) => page.locator(`tbody tr td:nth-child(${at})`).allTextContents();
  await page.getByRole("button", { name: "Spend, month" }).click();
  expect(visitor.path()).toEndWith("&sort=-spend");
  const spends = async () => (await column(5)).map((text) => Number(text.replaceAll(/[^\d.]/g, "")));
  await until(async () => {
    const found = await spends();
    return found.length > 5 && found.join() === found.toSorted((a, b) => b - a).join();
  }, "the highest spend is first");
  await page.getByRole("button", { name: "Key", exact: true }).click();
  const names = () => page.locator("tbody a").allInnerTexts();
  await until(async () => {
    const found = await names();
    return found.length > 5 && found.join() === found.toSorted((a, b) => a.localeCompare(b, "en")).join();
  }, "the names rise");
  expect(await page.getByRole("columnheader", { name: "Key" }).getAttribute("aria-sort")).toBe("ascending");
  expect((await column(3)).every((text) => text.endsWith("by Ada Lovelace"))).toBe(true);
  expect(visitor.trouble).toEqual([]);
});

test("revokes the selected keys together, and no key that another filter hides", async () => {
  const keys: string[] = [];
  for (const name of ["Bulk one", "Bulk two", "Bulk three"]) {
    const made = await world.server.request("/v1/keys", { body: { name } });
    keys.push(((await made.json()) as { key: string }).key);
  }
  await using visitor = await arrive(`${place}?search=bulk`);
  const { page } = visitor;
  await page.getByRole("checkbox", { name: "Select Bulk two" }).check();
  await page.getByRole("searchbox", { name: "Search keys" }).fill("bulk t");
  await page.getByText("2 in total").waitFor();
  expect(await page.getByRole("button", { name: /^Revoke/ }).count()).toBe(0);
  await page.getByRole("checkbox", { name: "Select all listed keys" }).check();
  await visitor.press("Revoke 2 keys");
  await dialog(page).getByText("Bulk three (").waitFor();
  await look(visitor, "keys-revoke-many");
  await dialog(page).getByRole("button", { name: "Revoke 2 keys" }).click();
  await page.getByText("2 keys revoked.").waitFor();
  expect(await Promise.all(keys.map(status))).toEqual([200, 401, 401]);
  expect(await page.getByRole("button", { name: /^Revoke/ }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("lets a member create and see only own keys, and offers no forbidden settings", async () => {
  await using visitor = await arrive(place, colleagues.member.email);
  const { page } = visitor;
  await page.getByRole("heading", { name: "Create the first API key" }).waitFor();
  await page.getByRole("button", { name: "Create API key" }).first().click();
  await page.getByRole("checkbox").first().waitFor();
  const offered = await page.getByRole("checkbox").count();
  expect(offered).toBe(6);
  await page.getByRole("button", { name: "Cancel" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Create API key" }).first().click();
  await field(page, "Name").fill("Mine");
  await visitor.press("Create key");
  await visitor.press("Done");
  await page.getByText("1 in total").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("blocks leaving while a key is created, and keeps the secret out of page and address", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  const answer = Promise.withResolvers<void>();
  await page.route("**/v1/keys", async (route) => {
    if (route.request().method() === "POST") await answer.promise;
    await route.continue();
  });
  await visitor.press("Create API key");
  await field(page, "Name").fill("W".repeat(100));
  await visitor.press("Create key");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Close" }).click();
  expect(await dialog(page).getByRole("button", { name: "Cancel" }).isDisabled()).toBe(true);
  answer.resolve();
  await visitor.press("Copy the key");
  const key = await copied(page);
  await visitor.press("Done");
  await dialog(page).waitFor({ state: "detached" });
  await visitor.press("Create API key");
  expect(await field(page, "Name").inputValue()).toBe("");
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
  const kept = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, history.state, document.documentElement.outerHTML]),
  );
  expect(kept).not.toContain(key);

  await page.getByRole("searchbox", { name: "Search keys" }).fill(` ${key} `);
  const found = page.getByRole("link", { name: "W".repeat(100) });
  await page.waitForURL(`**?search=${key.slice(-4)}`);
  await found.waitFor();
  // A long name pushes no other column out of sight.
  const head = await page.getByRole("columnheader", { name: "Last used" }).boundingBox();
  expect((head?.x ?? desktop.width) + (head?.width ?? 0)).toBeLessThan(desktop.width);
  await found.click();
  await page.getByRole("heading", { level: 1, name: "W".repeat(100) }).waitFor();
  await look(visitor, "keys-long-name");
  await page.getByRole("link", { name: "API Keys", exact: true }).click();
  expect(await page.getByRole("searchbox", { name: "Search keys" }).inputValue()).toBe("");
});

test("copies without the clipboard API, as over plain HTTP, or selects the text", async () => {
  await using visitor = await arrive(place);
  const { page } = visitor;
  await page.addInitScript(() => void Reflect.deleteProperty(Navigator.prototype, "clipboard"));
  await visitor.go(place);
  await visitor.press("Create API key");
  await field(page, "Name").fill("Plain http");
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const button = dialog(page).getByRole("button", { name: "Copied" });
  await button.waitFor();
  expect(await focused(page)).toBe("Copied");
  const key = (await dialog(page).textContent())?.match(/sk_dev_hr_\w{36}/)?.[0] ?? "none";
  await visitor.press("Done");
  await dialog(page).waitFor({ state: "detached" });
  await page.getByRole("searchbox", { name: "Search keys" }).press("Control+V");
  await page.waitForURL(`**?search=${key.slice(-4)}`);

  await page.evaluate(() => {
    document.execCommand = () => false;
  });
  await visitor.press("Create API key");
  await field(page, "Name").fill("Nothing copies");
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  await dialog(page).getByText("press Ctrl+C").waitFor();
  expect(await page.evaluate(() => String(getSelection()))).toMatch(/^sk_dev_hr_\w{36}$/);
  expect(visitor.trouble).toEqual([]);
});
