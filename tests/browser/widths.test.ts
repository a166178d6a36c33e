// In a real browser: every page of the dashboard keeps its columns readable from a small phone to a wide desktop.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { desktop, leaveBrowser, openVisitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";

/** CSS pixels. */
const widths = [360, 390, 768, 800, 1000, 1024, 1200, 1440];
let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld({ modelCount: 12 });
  await world.fill();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

test("keeps each text at least four characters wide on every page, without sideways scrolling at any width", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  const { page } = visitor;
  await world.signIn(visitor.context);
  await visitor.go("/");
  const links = page.getByRole("navigation").getByRole("link");
  await links.first().waitFor();
  const paths = await links.evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
  expect(paths.length).toBeGreaterThan(20);
  const faults: string[] = [];
  for (const path of paths) {
    await visitor.go(path);
    await page.locator("h1").waitFor();
    await page.waitForLoadState("networkidle");
    for (const width of widths) {
      await page.setViewportSize({ ...desktop, width });
      for (const fault of await page.evaluate(faultsOfWidth)) faults.push(`${path} at ${width}: ${fault}`);
    }
  }
  expect(faults).toEqual([]);
}, 480_000);

test("shows every figure of Prices on a phone without sideways scrolling", async () => {
  await using visitor = await openVisitor({ at: world.server.url, size: { width: 360, height: 780 } });
  const { page } = visitor;
  await world.signIn(visitor.context);
  await visitor.go("/prices");
  for (const name of ["Prices of this server", "The price list"]) {
    const table = page.getByRole("region", { name });
    await table.locator("tbody tr").first().waitFor();
    expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    expect(await table.getByRole("columnheader").allTextContents()).toEqual(["Model", "Input", "Output"]);
  }
});

/** Runs in the page. Returns the texts whose box is too narrow for them, and whether the page scrolls sideways. */
async function faultsOfWidth(): Promise<string[]> {
  for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
  for (const animation of document.getAnimations()) {
    if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
  }
  await new Promise(requestAnimationFrame);
  const faults = new Set<string>();
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.add(`the page is ${scrollWidth} px wide`);
  const texts = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.textContent?.trim() ?? "";
    let box = node.parentElement;
    // A long model name is cut in its middle: its two parts have one box.
    const isPart = (element: Element) =>
      getComputedStyle(element).display === "inline" || element.parentElement?.matches(".model-name");
    while (box && isPart(box)) box = box.parentElement;
    if (!box || text.length < 4 || box.closest("svg, [aria-hidden=true]") || !box.checkVisibility()) continue;
    const style = getComputedStyle(box);
    // A text for screen readers alone is one pixel wide.
    if (style.position === "absolute" && box.clientWidth <= 1) continue;
    const padding = Number.parseFloat(style.paddingLeft) + Number.parseFloat(style.paddingRight);
    // A character of these fonts is about half as wide as it is high.
    if (box.clientWidth - padding < 2 * Number.parseFloat(style.fontSize)) {
      faults.add(`"${text.slice(0, 30)}" has ${box.clientWidth - padding} px`);
    }
  }
  return [...faults];
}
