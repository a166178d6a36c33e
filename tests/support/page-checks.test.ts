// The look at a page, planted with one fault at a time, finds it, also where it is seen in one of the views alone.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { leaveBrowser, openVisitor, type Visitor } from "./chromium.ts";
import { look } from "./page-checks.ts";

interface Planted {
  style?: string;
  body?: string;
  /** What the page runs. */
  script?: string;
  headers?: Record<string, string>;
}

const headersOfOurs = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; frame-ancestors 'none'",
};
const ground = "@media (prefers-color-scheme: dark) { body { color: #eee; background: #111 } }";

let site: Bun.Server<undefined>;
let visitors: Record<"withScripts" | "without", Visitor>;
let planted: Planted = {};

beforeAll(async () => {
  site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/style.css": () => new Response(ground + (planted.style ?? ""), { headers: { "content-type": "text/css" } }),
      "/script.js": () =>
        new Response(planted.script ?? "", { headers: { "content-type": "text/javascript; charset=utf-8" } }),
      "/": () =>
        new Response(
          `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Page · Headrace</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><script defer src="/script.js"></script>
<main><h1>Page</h1>${planted.body ?? "<p>All is well.</p>"}</main></html>`,
          { headers: { ...headersOfOurs, ...planted.headers } },
        ),
    },
  });
  visitors = {
    withScripts: await openVisitor({ at: site.url.href }),
    without: await openVisitor({ at: site.url.href, scripts: false }),
  };
}, 30_000);

afterAll(async () => {
  await visitors.withScripts[Symbol.asyncDispose]();
  await visitors.without[Symbol.asyncDispose]();
  leaveBrowser();
  await site.stop(true);
});

/** What the look says of a page with this in it; empty where it has nothing to say. */
async function complaintOf(fault: Planted, scripts = true): Promise<string> {
  planted = fault;
  const visitor = visitors[scripts ? "withScripts" : "without"];
  visitor.trouble.length = 0;
  await visitor.go("/");
  try {
    await look(visitor, "planted");
    return "";
  } catch (error) {
    return String(error);
  }
}

test("passes a page without faults, with scripts and without", async () => {
  expect(await complaintOf({})).toBe("");
  expect(await complaintOf({}, false)).toBe("");
});

const onlyAt = (condition: string, rule: string) => `@media (${condition}) { ${rule} }`;

test.each<[fault: string, planted: Planted, said: RegExp]>([
  [
    "text too pale in light",
    { style: onlyAt("prefers-color-scheme: light", "p { color: #bbb }") },
    /light.*color-contr/s,
  ],
  [
    "text too dim in dark",
    { style: onlyAt("prefers-color-scheme: dark", "p { color: #444 }") },
    /dark.*color-contrast/s,
  ],
  [
    "text that goes dim bit by bit as it gets dark",
    { style: `p { transition: color 60s } ${onlyAt("prefers-color-scheme: dark", "p { color: #444 }")}` },
    /dark.*color-contrast/s,
  ],
  [
    "text that is cut off at 320 alone",
    {
      body: "<button>Add a passkey</button>",
      style: onlyAt("width <= 320px", "button { width: 4em; white-space: nowrap }"),
    },
    /at 320.*BUTTON: Add a passkey/s,
  ],
  [
    "text that is cut off at 390",
    {
      body: "<button>Add a passkey</button>",
      style: onlyAt("width <= 390px", "button { width: 4em; white-space: nowrap }"),
    },
    /at 390.*BUTTON: Add a passkey/s,
  ],
  [
    "a box that has closed over its text once it came to rest",
    {
      body: "<section><p>All is well.</p></section>",
      style: `section { height: 4em; transition: height 60s } ${onlyAt("width <= 320px", "section { height: 1px }")}`,
    },
    /at 320.*SECTION: All is well/s,
  ],
  [
    "a page to be moved sideways at 320",
    { style: onlyAt("width <= 320px", "p { width: 400px }") },
    /at 320.*page is 4/s,
  ],
  [
    "a page to be moved sideways at 1280",
    { style: onlyAt("width >= 1280px", "p { width: 1400px }") },
    /at 1280.*page is 1/s,
  ],
  ["a field without a label", { body: "<input name=n>" }, /unlabelled/],
  ["a choice without a label", { body: "<select><option>One</option></select>" }, /select-name/],
  ["a picture that is not described", { body: '<img src="data:,">' }, /image-alt/],
  [
    "something too small to be hit",
    { body: "<button>x</button><button>y</button>", style: "button { all: unset; font-size: 9px }" },
    /target-size/,
  ],
  ["a heading of the first level too many", { body: "<h1>Another</h1>" }, /headings/],
  ["a script that fails", { script: "nothing.there()" }, /script: nothing is not defined/],
  ["what the policy forbids", { body: '<p style="color: red">All is well.</p>' }, /console error/],
  ["a page that may be kept by caches", { headers: { "cache-control": "private" } }, /no-store/],
])("finds the page fault: %s", async (_fault, fault, said) => {
  expect(await complaintOf(fault)).toMatch(said);
});

test("checks a page without scripts as it stands", async () => {
  const style = onlyAt("width <= 320px", "p { width: 400px }");
  expect(await complaintOf({ style }, false)).toMatch(/at 320.*page is 4/s);
});
