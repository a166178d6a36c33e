// In a real browser: apps are registered, changed, rotated and deleted; what somebody allowed them is seen and taken back.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { operator, pagesOf, startCallback } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
let at: string;
let callback: ReturnType<typeof startCallback>;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 2, requests: 600, chats: 0, events: 0 });
  at = pagesOf(world.server);
  callback = startCallback();
});

beforeEach(() => {
  callback.seen.length = 0;
});

afterAll(async () => {
  leaveBrowser();
  await callback.stop();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email = operator.email, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at, size, others: callback.hosts });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const waitForText = ({ page }: Visitor, text: string) => page.getByText(text).first().waitFor();
const dialog = (page: Page) => page.getByRole("dialog");
const field = (page: Page, name: string) => dialog(page).getByRole("textbox", { name, exact: true });
const redirectUris = (page: Page) => dialog(page).getByRole("combobox", { name: "Redirect URIs" });
const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText());

/** What the token endpoint says of an unknown code: `invalid_grant` to an app that it knows, else `invalid_client`. */
async function clientIs(id: string, secret: string): Promise<unknown> {
  const response = await fetch(`${world.server.url}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${id}:${secret}`)}` },
    body: new URLSearchParams({ grant_type: "authorization_code", code: "unknown", code_verifier: "v".repeat(43) }),
  });
  return ((await response.json()) as { error?: string }).error;
}

/** Registers an app and gives what the page shows this once. */
async function register(visitor: Visitor, name: string): Promise<{ id: string; secret: string }> {
  const { page } = visitor;
  await page.getByRole("button", { name: "Register an app" }).first().click();
  await field(page, "Name").fill(name);
  await redirectUris(page).pressSequentially(`${callback.redirectUri} `);
  await visitor.press("Register app");
  await visitor.press("Copy the client id");
  const id = await copied(page);
  await visitor.press("Copy the client secret");
  return { id, secret: await copied(page) };
}

test("registers an app, shows its secret once, and signs a person in with the snippets", async () => {
  await using ada = await arrive("/apps");
  const { page } = ada;
  const { id, secret } = await register(ada, "Notes of Ada");
  expect(await clientIs(id, secret)).toBe("invalid_grant");
  await look(ada, "apps-made");
  await ada.press("Copy the URL");
  const url = new URL(await copied(page));
  expect(url.origin + url.pathname).toBe(`${at}/oauth/authorize`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    ...{ response_type: "code", client_id: id, redirect_uri: callback.redirectUri, scope: "chat:write models:read" },
    ...{ state: "STATE", code_challenge: "CHALLENGE", code_challenge_method: "S256" },
  });

  await page.getByRole("tab", { name: "Shell" }).click();
  await ada.press("Copy the commands");
  const script = (await copied(page)).replace("CODE='the code'", "read CODE");
  const shell = Bun.spawn(["sh", "-c", script.replace("curl ", "curl --silent --max-time 10 ")], {
    ...{ stdin: "pipe", stdout: "pipe", stderr: "ignore" },
  });
  const output = shell.stdout.getReader();
  const asked = new TextDecoder().decode((await output.read()).value).trim();
  await ada.press("Done");
  await page.waitForURL(`**/apps/${id}`);
  expect(await page.content()).not.toContain(secret);
  await ada.go(asked);
  await ada.press("Allow");
  await page.waitForURL(`${callback.redirectUri}**`);
  shell.stdin.write(`${callback.seen.at(-1)?.searchParams.get("code")}\n`);
  await shell.stdin.end();
  expect(new TextDecoder().decode((await output.read()).value)).toContain('"access_token"');
  expect(ada.trouble).toEqual([]);
});

test("refuses an invalid redirect URI beside its field by name", async () => {
  await using ada = await arrive("/apps?create=1", operator.email, phone);
  const { page } = ada;
  await ada.press("Register app");
  await waitForText(ada, "Enter a name. People see it");
  await page.locator("[aria-invalid=true]:focus").waitFor();
  await field(page, "Name").fill("Hasty");
  await redirectUris(page).pressSequentially("https://notes.example/callback http://notes.example/callback ");
  await look(ada, "apps-create");
  await ada.press("Register app");
  await waitForText(ada, "http://notes.example/callback must begin with https://");
  expect(await dialog(page).getByRole("alert").count()).toBe(0);
  expect(ada.trouble.every((one) => one.includes("400"))).toBe(true);
});

test("registers a public app without a secret, with PKCE and optional redirect URIs", async () => {
  await using ada = await arrive("/apps?create=1");
  const { page } = ada;
  await field(page, "Name").fill("Television");
  await page.getByRole("radio", { name: "On a user's device" }).check();
  const pkce = page.getByRole("checkbox", { name: "Refuse requests without PKCE" });
  expect([await pkce.isChecked(), await pkce.isDisabled()]).toEqual([true, true]);
  await ada.press("Register app");
  await waitForText(ada, "This app is public and has no secret");
  await ada.press("Copy the commands");
  const asked = (await copied(page)).split("\n# Then")[0] ?? "";
  const shell = Bun.spawn(["sh", "-c", asked.replace("curl ", "curl --silent --max-time 10 ")], { stderr: "ignore" });
  expect(await new Response(shell.stdout).text()).toContain('"user_code"');
  await ada.press("Done");
  await page.getByRole("heading", { name: "Television" }).waitFor();
  expect(await page.getByRole("button", { name: "Rotate secret" }).count()).toBe(0);
  expect(ada.trouble).toEqual([]);
});

test("changes an app, rotates its secret with an overlap, and deletes it after its name is typed", async () => {
  await using ada = await arrive("/apps");
  const { page } = ada;
  const { id, secret } = await register(ada, "Short-lived");
  await ada.press("Done");
  await page.waitForURL(`**/apps/${id}`);

  await ada.press("Edit");
  await field(page, "Name").fill("Long-lived");
  await field(page, "Home page").fill("https://notes.example/");
  await page.getByRole("checkbox", { name: "See its usage" }).check();
  await waitForText(ada, "People must allow the permissions that you add");
  await look(ada, "apps-edit");
  await ada.press("Save");
  await page.getByRole("heading", { name: "Long-lived", exact: true }).waitFor();
  await page.getByRole("link", { name: "https://notes.example/" }).waitFor();

  await ada.press("Rotate secret");
  await page.getByLabel("Keep the old secret working").selectOption({ label: "for 1 hour" });
  await look(ada, "apps-rotate");
  await ada.press("Rotate the secret");
  await ada.press("Copy the client secret");
  const next = await copied(page);
  await waitForText(ada, `The old secret, …${secret.slice(-4)}, works until`);
  await ada.press("Done");
  expect([await clientIs(id, secret), await clientIs(id, next)]).toEqual(["invalid_grant", "invalid_grant"]);
  await page.getByText(`…${next.slice(-4)}`).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.content()).not.toContain(next);

  await ada.press("Suspend");
  await look(ada, "apps-suspend");
  await ada.press("Suspend app");
  await waitForText(ada, "Suspended: its tokens are refused");
  expect(await world.browser.ask(`/v1/apps/${id}`)).toMatchObject({ status: "suspended" });
  await ada.press("Resume");
  await ada.press("Resume app");
  await page.getByText("Suspended: its tokens are refused").waitFor({ state: "detached" });

  await ada.press("Delete");
  const last = page.getByRole("button", { name: "Delete app" });
  expect(await last.isDisabled()).toBe(true);
  await dialog(page).getByLabel("Type Long-lived to confirm").fill("Long-lived");
  await look(ada, "apps-delete");
  await last.click();
  await page.waitForURL("**/apps");
  await waitForText(ada, "The app “Long-lived” was deleted.");
  await page.getByRole("link", { name: "Meeting Notes" }).waitFor();
  expect(await page.getByRole("link", { name: "Long-lived" }).count()).toBe(0);
  expect(await clientIs(id, next)).toBe("invalid_client");
  expect(ada.trouble).toEqual([]);
});

test("leads from the list to an app with its usage", async () => {
  await using ada = await arrive("/apps", operator.email, phone);
  await look(ada, "apps");
  await ada.page.getByRole("link", { name: "Meeting Notes" }).click();
  await ada.page.getByText(/^\d+ requests, /).waitFor();
  await look(ada, "apps-one");
});

test("describes allowed apps in words on a tab with its own address, and withdraws one after one question", async () => {
  await using ada = await arrive("/apps");
  const { page } = ada;
  await page.getByRole("tab", { name: "Apps I allowed" }).click();
  expect(ada.path()).toBe("/apps?tab=allowed");
  await page.reload();
  const allowed = page.getByRole("list", { name: "Apps I allowed" });
  const handler = allowed.locator("> li", { hasText: "Desk Assistant" });
  for (const text of ["Use models on your behalf", "See which models you can use", "For the account First account"]) {
    await handler.getByText(text).waitFor();
  }
  await look(ada, "apps-allowed");
  await ada.press("Revoke access for Desk Assistant");
  await waitForText(ada, "The app loses its access to First account immediately");
  await ada.press("Revoke access");
  await waitForText(ada, "Desk Assistant no longer has access.");
  await handler.waitFor({ state: "detached" });
  await allowed.getByText("Meeting Notes").waitFor();
  expect(ada.trouble).toEqual([]);
});

test("explains apps to a person who has neither created nor allowed one", async () => {
  await using katherine = await arrive("/apps", colleagues.member.email, phone);
  await waitForText(katherine, "Register the first app");
  await look(katherine, "apps-none");
  await katherine.page.getByRole("tab", { name: "Apps I allowed" }).click();
  await waitForText(katherine, "No apps allowed yet");
  await look(katherine, "apps-none-allowed");
});
