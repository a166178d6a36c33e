// In a real browser: the statement of a month is chosen, adds up, is kept as CSV, and is printed as nothing but itself.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
/** Where pictures are wanted, also of what is printed. */
const pictures = process.env["TEST_PICTURES"];

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 40, requests: 3_000, chats: 0, events: 0 });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const lines = ({ page }: Visitor) => page.getByRole("region", { name: "Lines of the statement" });
function nano(text: string): bigint {
  const [dollars = "", fraction = ""] = text.replaceAll(/[^\d.]/g, "").split(".");
  return BigInt(dollars + fraction.padEnd(9, "0"));
}

/** Costs of the lines, and that of the total. */
async function costs(visitor: Visitor): Promise<{ lines: bigint[]; total: bigint }> {
  const all = (await lines(visitor).locator("tr td:last-child").allTextContents()).map(nano);
  return { lines: all.slice(0, -1), total: all.at(-1) ?? -1n };
}

test("shows statements by key, person and model with the same total to the last decimal", async () => {
  await using visitor = await arrive("/statements");
  const { page } = visitor;
  await lines(visitor).getByText("Total", { exact: true }).waitFor();
  await look(visitor, "statement");
  const byKey = await costs(visitor);
  // One of the lines needs the last digit that all have.
  const shown = await lines(visitor).locator("tr td:last-child").allTextContents();
  expect(new Set(shown.map((text) => text.split(".")[1]?.length)).size).toBe(1);
  expect(shown.some((text) => /\.\d{2}$|[1-9]$/.test(text))).toBe(true);
  expect(byKey.lines.length).toBeGreaterThan(3);
  expect(byKey.lines.reduce((sum, one) => sum + one, 0n)).toBe(byKey.total);
  for (const [label, by, head] of [
    ["Person", "person", "Person"],
    ["Key and model", "key,model", "Model"],
  ] as const) {
    await page.getByRole("combobox", { name: "Group by" }).click();
    await page.getByRole("option", { name: label, exact: true }).click();
    await lines(visitor).getByRole("columnheader", { name: head, exact: true }).waitFor();
    expect(new URLSearchParams(visitor.path().split("?")[1]).get("by")).toBe(by);
    const one = await costs(visitor);
    expect([by, one.total]).toEqual([by, byKey.total]);
    expect(one.lines.reduce((sum, line) => sum + line, 0n)).toBe(one.total);
  }
  await page.getByText("Requests to models without a price, not included in the cost").waitFor();
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("exports a statement as CSV with all lines and total, and warns of overlapping tag lines", async () => {
  await using visitor = await arrive("/statements?by=tag");
  const { page } = visitor;
  await page.getByText("A request with several tags appears in several lines").waitFor();
  const { total } = await costs(visitor);
  const [file] = await Promise.all([page.waitForEvent("download"), visitor.press("CSV")]);
  expect(file.suggestedFilename()).toMatch(/^headrace-statement-\d{4}-\d\d-by-tag\.csv$/);
  const rows = readFileSync(await file.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  expect(rows.at(-1)).toStartWith("total,");
  expect(nano(rows.at(-1)?.split(",").at(-2) ?? "")).toBe(total);
});

test("prints only the statement, dark on white, whatever the screen's theme", async () => {
  await using visitor = await arrive("/statements?by=key,model");
  const { page } = visitor;
  await lines(visitor).getByText("Total", { exact: true }).waitFor();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  for (const hidden of [
    page.getByRole("button", { name: "Print" }),
    page.getByRole("link", { name: "Overview" }),
    page.getByRole("combobox", { name: "Month" }),
    page.locator("header"),
  ]) {
    expect(await hidden.first().isVisible()).toBe(false);
  }
  expect(await page.getByRole("region", { name: "Statement", exact: true }).isVisible()).toBe(true);
  const colours = await page
    .locator(".statement-table td")
    .first()
    .evaluate((cell) => [getComputedStyle(cell).color, getComputedStyle(document.body).backgroundColor]);
  expect(colours).toEqual(["rgb(0, 0, 0)", "rgb(255, 255, 255)"]);
  const pdf = await page.pdf({ format: "A4" });
  expect(pdf.subarray(0, 5).toString()).toBe("%PDF-");
  if (pictures) {
    writeFileSync(join(pictures, "statement.pdf"), pdf);
    await page.setViewportSize({ width: 794, height: 1123 });
    await page.screenshot({ path: join(pictures, "statement-printed.png") });
  }
  expect(visitor.trouble).toEqual([]);
});

test("shows an operator any account's statement and all, and a member the own", async () => {
  await using visitor = await arrive("/statements");
  const { page } = visitor;
  await page.getByRole("combobox", { name: "Account" }).click();
  await page.getByRole("option", { name: "All accounts" }).click();
  await lines(visitor).getByRole("columnheader", { name: "Account", exact: true }).waitFor();
  const { lines: all, total } = await costs(visitor);
  expect(all.reduce((sum, one) => sum + one, 0n)).toBe(total);
  await look(visitor, "statement-accounts");
  await using member = await arrive("/statements", colleagues.member.email, phone);
  await lines(member).getByText("Total", { exact: true }).waitFor();
  expect((await costs(member)).total).toBe(0n);
  expect(await member.page.getByRole("combobox", { name: "Account" }).count()).toBe(0);
  await look(member, "statement-member");
  expect([...visitor.trouble, ...member.trouble]).toEqual([]);
}, 60_000);
