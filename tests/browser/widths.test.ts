// In a real browser: every page of the dashboard keeps its columns readable from a small phone to a wide desktop.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { desktop, leaveBrowser, openVisitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";

/** CSS pixels. */
const widths = [360, 390, 768, 800, 1000, 1024, 1152, 1200, 1280, 1440, 1920];
let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld({ modelCount: 12 });
  await world.fill();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

test("cuts and overlaps no text, squeezes no column below 8 rem and never scrolls sideways, on every page at any width", async () => {
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
}, 900_000);

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

/**
 * Runs in the page. Returns the texts whose box is too narrow for them, columns below 8 rem with broken texts, texts that
 * are cut or overlap, and whether the page scrolls sideways.
 */
async function faultsOfWidth(): Promise<string[]> {
  // A row out of view has the height that its styles estimate; it is measured as it looks in view.
  const inView = new CSSStyleSheet();
  inView.replaceSync("* { content-visibility: visible !important }");
  document.adoptedStyleSheets = [inView];
  for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
  for (const animation of document.getAnimations()) {
    if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
  }
  await new Promise(requestAnimationFrame);
  const faults = new Set<string>();
  const drawn: { part: Pick<DOMRect, "left" | "right" | "top" | "bottom">; text: string; box: Element }[] = [];
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
    // The reference draws only the part in view, and is measured by its own tests.
    if (location.pathname.startsWith("/docs")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({ width }) => width > 1);
    // A column narrower than 8 rem is meant for what fits on one line there. On the smallest phones names break earlier.
    const column = box.closest("td, th") ?? box.parentElement;
    const isColumn = column?.matches("td, th") || ["grid", "inline-grid"].includes(gridOf(column));
    const lines = new Set(rects.map(({ top }) => Math.round(top))).size;
    if (
      isColumn &&
      innerWidth >= 390 &&
      column &&
      lines > 1 &&
      column.clientWidth < 128 &&
      !column.closest("[role=group]")
    ) {
      faults.add(`"${text.slice(0, 30)}" breaks in a column of ${column.clientWidth} px`);
    }
    const isCut = style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && style.webkitLineClamp === "none";
    if (isCut && box.scrollWidth > box.clientWidth + 1) faults.add(`"${text.slice(0, 30)}" is cut`);
    for (const rect of rects) {
      const part = visiblePart(rect, box);
      if (part) drawn.push({ part, text: text.slice(0, 30), box });
    }
  }
  drawn.sort((a, b) => a.part.top - b.part.top);
  for (const [index, one] of drawn.entries()) {
    for (const other of drawn.slice(index + 1)) {
      if (other.part.top >= one.part.bottom - 3) break;
      if (other.box === one.box || other.box.contains(one.box) || one.box.contains(other.box)) continue;
      const shared = Math.min(one.part.right, other.part.right) - Math.max(one.part.left, other.part.left);
      if (shared > 3) faults.add(`"${one.text}" overlaps "${other.text}"`);
    }
  }
  return [...faults];

  function gridOf(element: Element | null): string {
    return element?.parentElement ? getComputedStyle(element.parentElement).display : "";
  }

  /** Returns the part of a text that its scrolling ancestors show; undefined if they hide it. */
  function visiblePart({ left, right, top, bottom }: DOMRect, within: Element) {
    const part = { left, right, top, bottom };
    for (let at: Element | null = within; at && at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(at);
      // A head or a button that stays in view covers what scrolls below it.
      if (position === "sticky" || position === "fixed" || position === "absolute") return undefined;
      if (overflowX === "visible" && overflowY === "visible") continue;
      const bounds = at.getBoundingClientRect();
      part.left = Math.max(part.left, bounds.left);
      part.right = Math.min(part.right, bounds.right);
      part.top = Math.max(part.top, bounds.top);
      part.bottom = Math.min(part.bottom, bounds.bottom);
    }
    return part.right - part.left > 2 && part.bottom - part.top > 2 ? part : undefined;
  }
}
