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

/**
 * Looks at the page of now at phone and desktop width, in light and dark. `name`: of its pictures. Each view is one call into
 * the page, in the order that changes least between two of them: hundreds of views are looked at in one run of the tests.
 */
export async function look(visitor: Visitor, name: string, expected: Look = {}): Promise<void> {
  expectHeaders(visitor, expected);
  await lookAtAll(visitor, name);
}

/** The same for a page with headers of its own. `excused`: rules of axe that its maker breaks. */
export async function lookAtAll(visitor: Visitor, name: string, excused: readonly string[] = []): Promise<void> {
  const { page, scripts, trouble } = visitor;
  // The dashboard makes its pages in the browser.
  await page.locator("h1").first().waitFor();
  await expectStructure(page);
  const before = page.viewportSize() ?? desktop;
  if (scripts && !(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  for (const [size, colorScheme, rules] of [
    [phone, "light", everyRule],
    [narrow, "light", undefined],
    [desktop, "dark", rulesOfLooks],
    ...(picturesIn === undefined
      ? []
      : ([
          [phone, "dark", undefined],
          [desktop, "light", undefined],
        ] as const)),
  ] as const) {
    await Promise.all([page.setViewportSize(size), page.emulateMedia({ colorScheme })]);
    // What settles and what judges are scripts, and wait as scripts do.
    const seen = await page.evaluate(judge, scripts ? { rules } : undefined);
    expect(seen.cutOff, `${name} at ${size.width}`).toEqual([]);
    const violations = seen.violations.filter((violation) => !excused.includes(violation.split(":")[0] ?? ""));
    expect(violations, `${name}, ${colorScheme}`).toEqual([]);
    if (picturesIn !== undefined && size !== narrow) await takePicture(page, `${name}-${size.width}-${colorScheme}`);
  }
  await Promise.all([page.setViewportSize(before), page.emulateMedia({ colorScheme: "light" })]);
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
    // Password managers keep a password for whom the field of the name before it names.
    nameless: [...document.forms].filter((form) => {
      const fields = [...form.querySelectorAll("[autocomplete~=username], [autocomplete$='-password']")];
      return fields[0]?.getAttribute("autocomplete")?.endsWith("-password");
    }).length,
  }));
  expect(found).toEqual({
    ...{ lang: "en", headings: 1, mains: 1, unlabelled: 0, nameless: 0 },
    title: expect.stringMatching(/^\S.* · Headrace$/) as unknown as string,
  });
}

interface Seen {
  /** Text that sticks out of the page or of its box, and a page that has to be moved sideways. */
  cutOff: string[];
  /** What axe finds, by its rules. */
  violations: string[];
}

/** Runs in the page. Without `asked` the page runs no scripts, and is judged as it stands. */
async function judge(asked: { rules: RunOptions | undefined } | undefined): Promise<Seen> {
  if (asked) {
    // What goes from the one look to the other bit by bit arrives at once, and with it what begins only then.
    for (let frames = 0; frames < 2; frames++) {
      await new Promise(requestAnimationFrame);
      for (const animation of document.getAnimations()) {
        if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
      }
    }
    await new Promise(requestAnimationFrame);
  }
  const cutOff: string[] = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) cutOff.push(`the page is ${scrollWidth} wide`);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const box = node.parentElement?.closest("button, .button, .sheet, section, summary, .tag, header");
    // Said only to who listens, or within reach by scrolling.
    const isUnseen = (node.parentElement?.clientWidth ?? 0) === 1;
    const scrolls = box && getComputedStyle(box).overflowY !== "visible";
    if (!box || isUnseen || scrolls || node.textContent?.trim() === "") continue;
    // Shortened with a sign that it is, or within reach by scrolling.
    const isMeant = () => {
      for (let at = node.parentElement; at && box.contains(at); at = at.parentElement) {
        const { textOverflow, overflowY } = getComputedStyle(at);
        if (textOverflow === "ellipsis" || overflowY === "auto" || overflowY === "scroll") return true;
      }
      return false;
    };
    const range = document.createRange();
    range.selectNodeContents(node);
    const bounds = box.getBoundingClientRect();
    for (const { left, right, top, bottom, width } of range.getClientRects()) {
      const isInside =
        left >= bounds.left - 1 && right <= bounds.right + 1 && top >= bounds.top - 1 && bottom <= bounds.bottom + 1;
      if (width > 0 && !isInside && !isMeant()) cutOff.push(`${box.tagName}: ${node.textContent}`);
    }
  }
  if (!asked?.rules) return { cutOff, violations: [] };
  const { axe } = globalThis as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } };
  const { violations } = await axe.run({ ...asked.rules, resultTypes: ["violations"], elementRef: false });
  return {
    cutOff,
    violations: violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`),
  };
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
