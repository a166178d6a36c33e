// The guides at a real browser: what they look like, that they run nothing but their own, search, and versions.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publish } from "../../site/publish.ts";
import { RouteTable } from "../../src/http/exchange/route-table.ts";
import { guideRoutes } from "../../src/http/guides/guide-routes.ts";
import { leaveBrowser, openVisitor } from "../support/chromium.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { lookAtAll } from "../support/page-checks.ts";

const root = join(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "headrace-guides-"));

let server: TestServer;
/** Takes longer than all other tests here together, and is made beside them. */
let builtWithFormer: Promise<Build>;

beforeAll(async () => {
  builtWithFormer = build(repository({ keys: "# Keys of now\n" }, { tag: "v0.1" }));
  server = await startHeadrace();
});

afterAll(async () => {
  await server.close();
  leaveBrowser();
  rmSync(folder, { recursive: true });
});

test("keeps guide pages readable in light and dark, on phone and desktop, without policy violations", async () => {
  await using visitor = await openVisitor({ at: server.url });
  for (const path of ["", "operating", "no-such-page"]) {
    await visitor.go(`/docs/${path}`);
    await visitor.page.locator(".VPContent h1").waitFor();
    // The letter of the shortcut on the button of the search is not in its name, which is "Search".
    await lookAtAll(visitor, `guides-${path || "home"}`, ["label-content-name-mismatch"]);
  }
  await visitor.go("/docs/keys");
  expect(await visitor.page.locator("p.version").first().textContent()).toBe("Version 0.1.0");
  const ground = () => visitor.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await visitor.page.getByRole("switch").first().click();
  expect(await ground()).not.toBe(light);
  await visitor.page.reload();
  expect(await ground()).not.toBe(light);
  expect(visitor.trouble).toEqual([]);
});

test("shows an option's meaning beside its name on a desktop without scrolling the widest table", async () => {
  await using visitor = await openVisitor({ at: server.url });
  await visitor.go("/docs/reference/configuration");
  const sizes = await visitor.page
    .locator("table")
    .first()
    .evaluate((table) => [table.scrollWidth, table.clientWidth]);
  expect(sizes[0]).toBe(sizes[1]);
});

test("copies a command by its button, and reaches text and search by keyboard alone", async () => {
  await using visitor = await openVisitor({ at: server.url });
  const { page, context } = visitor;
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visitor.go("/docs/getting-started");
  const block = page.locator(".language-sh").first();
  await block.hover();
  await block.getByRole("button", { name: "Copy Code" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("npm start");
  await page.reload();
  // Only the page's script moves the focus along; until it runs, the link leads to the place alone.
  await page.waitForFunction(() => "__vue_app__" in (document.getElementById("app") ?? {}));
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("VPContent");
  await page.keyboard.press("Control+k");
  await page.getByRole("searchbox").fill("passkeys");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/sign-in#passkeys");
  expect(visitor.trouble).toEqual([]);
});

test("finds a heading by search without requests to other hosts, and links to it", async () => {
  await using visitor = await openVisitor({ at: server.url });
  await visitor.go("/docs/");
  await visitor.page.getByRole("button", { name: /^Search/ }).click();
  await visitor.page.getByRole("searchbox").fill("tags and a note");
  await visitor.page.getByRole("option").first().click();
  await visitor.page.waitForURL("**/docs/keys#tags-and-a-note");
  expect(visitor.trouble).toEqual([]);
});

test("redirects an endpoint's old address in the reference, and reports a missing page", async () => {
  await using visitor = await openVisitor({ at: server.url });
  await visitor.go("/docs#rotateKey");
  await visitor.page.waitForURL("**/docs/api#rotateKey");
  await visitor.go("/docs/no-such-page");
  expect(visitor.answer().status()).toBe(404);
  await visitor.page.getByRole("link", { name: "Go to the guides" }).click();
  await visitor.page.waitForURL("**/docs/");
  expect(visitor.trouble).toEqual([]);
});

/** A small repository of its own, with a tag. */
function repository(pages: Record<string, string>, { tag }: { tag?: string } = {}): string {
  const path = mkdtempSync(join(folder, "repository-"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", path, "-c", "user.name=A", "-c", "user.email=a@example.com", ...args]);
  const write = (version: string, more: Record<string, string>) => {
    const list = Object.keys(more).map((name) => `- [${name}](${name}.md)\n`);
    mkdirSync(join(path, "docs"), { recursive: true });
    writeFileSync(join(path, "package.json"), JSON.stringify({ version }));
    writeFileSync(join(path, "docs/README.md"), `# Guides\n\n## All\n\n${list.join("")}`);
    for (const [name, text] of Object.entries(more)) writeFileSync(join(path, `docs/${name}.md`), text);
  };
  git("init", "-q");
  if (tag !== undefined) {
    write("0.1.0", { keys: "# Keys of before\n" });
    git("add", ".");
    git("commit", "-qm", "before");
    git("tag", tag);
    writeFileSync(join(path, "docs/versions.json"), JSON.stringify([tag]));
  }
  write("0.2.0", pages);
  return path;
}

interface Build {
  out: string;
  status: number;
  stderr: string;
}

async function build(path: string): Promise<Build> {
  const out = join(path, "site");
  const command = [process.execPath, join(root, "site/build.ts"), "--root", path, "--out", out];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [stderr, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { out, status, stderr };
}

test("builds an earlier version beside the current one, with a chooser between them", async () => {
  const { out, status, stderr } = await builtWithFormer;
  expect([status, stderr]).toEqual([0, expect.anything()]);
  const table = new RouteTable(guideRoutes({ guidesDirectory: out }));
  using site = Bun.serve({
    port: 0,
    async fetch({ url, headers }) {
      const target = new URL(url).pathname;
      const found = table.find("GET", target);
      if (found?.route.access !== "page") return server.request(target);
      const { route, params } = found;
      return await responseOf(() =>
        route.handle(exchangeFor(incoming({ target, headers: Object.fromEntries(headers) }), { params })),
      );
    },
  });
  await using visitor = await openVisitor({ at: site.url.href });
  await visitor.go("/docs/keys");
  expect(await visitor.heading()).toStartWith("Keys of now");
  const chooser = visitor.page.getByLabel("Version of the guides").first();
  await chooser.selectOption({ label: "Version 0.1.0" });
  await visitor.page.waitForURL("**/docs/v0.1/keys");
  expect(await visitor.heading()).toStartWith("Keys of before");
  expect(visitor.trouble).toEqual([]);
});

test("fails the build for a link to a missing page, by name", async () => {
  const { status, stderr } = await build(repository({ keys: "# Keys\n\n[There](nothing.md)\n" }));
  expect([status, stderr]).toEqual([1, expect.stringContaining("docs/keys.md: the link to nothing.md leads nowhere")]);
});

test("fails the build for a link to a missing heading and for a style in a page", () => {
  const made = mkdtempSync(join(folder, "made-"));
  const page = (body: string) => writeFileSync(join(made, "keys.html"), `<html><body>${body}</body></html>`);
  page('<h2 id="scopes"></h2><a href="#scopes"></a><a href="/docs/keys#scope"></a>');
  expect(() => publish(made, [""])).toThrow("keys: /docs/keys#scope");
  page('<p style="color:red"></p>');
  expect(() => publish(made, [""])).toThrow("keys.html: the policy of pages takes no inline style");
});
