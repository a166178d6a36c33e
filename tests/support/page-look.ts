// What must hold of every page that a visitor sees: its headers, its structure, that nobody is kept out, and that nothing is cut off.
import { expect } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AxeResults, RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { desktop, phone, type Visitor } from "./chromium.ts";

const axeSource = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const narrow = { width: 320, height: 640 };
const everyRule: RunOptions = { rules: { "target-size": { enabled: true } } };
/** What may be otherwise in other colours, at another width. */
const rulesOfLooks: RunOptions = { runOnly: ["color-contrast", "link-in-text-block", "target-size"] };
/** Where pictures of all pages go, for somebody to look at; none are taken unless it is set. */
const picturesIn = process.env["TEST_PICTURES"];

export interface Look {
  status?: number;
  /** The policy that the page must have been sent with. */
  referrerPolicy?: "no-referrer" | "same-origin";
}

/** Looks at the page of now at phone and desktop width, in light and dark. `name`: of its pictures. */
export async function look(visitor: Visitor, name: string, expected: Look = {}): Promise<void> {
  const { page, scripts, trouble } = visitor;
  expectHeaders(visitor, expected);
  // The dashboard makes its pages in the browser.
  await page.locator("h1").first().waitFor();
  await expectStructure(page);
  const before = page.viewportSize() ?? desktop;
  if (scripts) await page.evaluate(axeSource);
  for (const [size, colorScheme, rules] of [
    [phone, "light", everyRule],
    [desktop, "dark", rulesOfLooks],
    [narrow, "light", undefined],
    ...(picturesIn === undefined
      ? []
      : ([
          [phone, "dark", undefined],
          [desktop, "light", undefined],
        ] as const)),
  ] as const) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    if (scripts) await settled(page);
    expect(await cutOff(page), `${name} at ${size.width}`).toEqual([]);
    // What judges it is a script, and waits as scripts do.
    if (scripts && rules) await expectAccessible(page, rules, `${name}, ${colorScheme}`);
    if (picturesIn !== undefined && size !== narrow) await takePicture(page, `${name}-${size.width}-${colorScheme}`);
  }
  await page.setViewportSize(before);
  await page.emulateMedia({ colorScheme: "light" });
  expect(trouble, name).toEqual([]);
}

/** With which the page of now must have been sent. */
export function expectHeaders(visitor: Visitor, { status = 200, referrerPolicy }: Look): void {
  const answer = visitor.answer();
  const headers = answer.headers();
  expect(answer.status()).toBe(status);
  expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  expect(headers["content-security-policy"]).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  expect(headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": referrerPolicy ?? expect.stringMatching(/^(no-referrer|same-origin)$/),
  });
}

async function expectStructure(page: Page): Promise<void> {
  const found = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    headings: document.querySelectorAll("h1").length,
    mains: document.querySelectorAll("main").length,
    title: document.title,
    unlabelled: [...document.querySelectorAll("input:not([type=hidden], [hidden])")].filter((input) => {
      return (input as HTMLInputElement).labels?.length !== 1 && !input.getAttribute("aria-label");
    }).length,
  }));
  expect(found).toEqual({
    ...{ lang: "en", headings: 1, mains: 1, unlabelled: 0 },
    title: expect.stringMatching(/^\S.* · Headrace$/) as unknown as string,
  });
}

async function expectAccessible(page: Page, rules: RunOptions, what: string): Promise<void> {
  const options: RunOptions = { ...rules, resultTypes: ["violations"], elementRef: false };
  const { violations } = await page.evaluate((given) => {
    return (globalThis as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }).axe.run(given);
  }, options);
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  expect(found, what).toEqual([]);
}

/** Half a second at most: what goes from the one look to the other bit by bit has arrived. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const passing = document.getAnimations().filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity);
    const late = new Promise((resolve) => setTimeout(resolve, 500));
    await Promise.race([late, Promise.allSettled(passing.map(({ finished }) => finished))]);
  });
}

/** Text that sticks out of the page or of its box, and a page that has to be moved sideways. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} wide`);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const box = node.parentElement?.closest("button, .button, .sheet, section, summary, .tag, header");
      const isShortened = node.parentElement && getComputedStyle(node.parentElement).textOverflow === "ellipsis";
      // Said only to who listens, or within reach by scrolling.
      const isUnseen = (node.parentElement?.clientWidth ?? 0) === 1;
      const scrolls = box && getComputedStyle(box).overflowY !== "visible";
      if (!box || isShortened || isUnseen || scrolls || node.textContent?.trim() === "") continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const bounds = box.getBoundingClientRect();
      for (const { left, right, top, bottom, width } of range.getClientRects()) {
        const isInside =
          left >= bounds.left - 1 && right <= bounds.right + 1 && top >= bounds.top - 1 && bottom <= bounds.bottom + 1;
        if (width > 0 && !isInside) found.push(`${box.tagName}: ${node.textContent}`);
      }
    }
    return found;
  });
}

async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(picturesIn ?? "", { recursive: true });
  await page.screenshot({ path: `${picturesIn}/${name}.png`, fullPage: true });
}

/** Whether what the keyboard is at can be seen to be. */
export async function expectVisibleFocus(page: Page): Promise<void> {
  const outline = await page.evaluate(() => {
    const style = getComputedStyle(document.activeElement ?? document.body);
    return { style: style.outlineStyle, isWide: Number.parseFloat(style.outlineWidth) >= 2 };
  });
  expect(outline).toEqual({ style: "solid", isWide: true });
}
