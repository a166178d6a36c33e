// In a real browser: owners and operators make webhooks, test them, see what came of it, and remove them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { look } from "../support/page-checks.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

let world: DashboardWorld;
let receiver: WebhookReceiver;

beforeAll(async () => {
  receiver = await startWebhookReceiver();
  world = await openDashboardWorld({ yaml: "webhook_loopback: true\n" });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
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

test.each([
  ["/settings/webhooks", "50, 80, 90 or 100 % of a quota are used"],
  ["/admin/webhooks", "An upstream does not answer"],
])(
  "creates, tests, disables and removes a webhook at %s, showing its secret once",
  async (path, event) => {
    await using visitor = await arrive(path);
    const { page } = visitor;
    await page.getByText("No webhooks yet").waitFor();
    await visitor.press("Add a webhook");
    await dialog(page).getByLabel("Address").fill("https://10.0.0.1/");
    await press(page, "Add webhook");
    await dialog(page).getByText("Must lead to the public internet").waitFor();
    // The browser tells of a refused request as of a fault.
    visitor.trouble.length = 0;
    await dialog(page).getByLabel("Address").fill(receiver.url);
    await dialog(page).getByLabel("Description").fill("The pager");
    await dialog(page).getByRole("checkbox", { name: event }).check();
    await look(visitor, `webhooks-add-${path.split("/")[1]}`);
    await press(page, "Add webhook");
    const secret = (await dialog(page).getByLabel("Copy the secret", { exact: true }).textContent()) ?? "";
    expect(secret).toStartWith("whsec_");
    await press(page, "Done");
    await dialog(page).getByText("No deliveries in the last 30 days.").waitFor();
    await press(page, "Send a test");
    await dialog(page).getByText("Delivered").waitFor();
    expect(receiver.received.some((one) => receiver.verifies(one, secret))).toBe(true);
    await look(visitor, `webhooks-one-${path.split("/")[1]}`);
    await press(page, "Disable");
    await dialog(page).getByRole("button", { name: "Enable", exact: true }).waitFor();
    await press(page, "Remove");
    await page
      .getByRole("dialog", { name: "Remove the webhook?" })
      .getByRole("button", { name: "Remove webhook" })
      .click();
    await page.getByText("No webhooks yet").waitFor();
  },
  60_000,
);

test("lets a signed-in person turn mails off and on", async () => {
  await using visitor = await arrive("/settings/security");
  const { page } = visitor;
  const choice = page.getByRole("switch", { name: "Notify me by mail" });
  expect(await choice.isChecked()).toBe(true);
  await choice.click();
  await page.getByText("Notifications by mail are off.").waitFor();
  await visitor.go("/settings/security");
  await page.getByRole("switch", { name: "Notify me by mail", checked: false }).waitFor();
  await look(visitor, "security-mail");
  await choice.click();
  await page.getByText("Notifications by mail are on.").waitFor();
});
