// The guides at a real browser: what they look like, that they run nothing but their own, search, and versions.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publish } from "../../site/publish.ts";
import { RouteTable } from "../../src/http/exchange/route-table.ts";
import { guideRoutes } from "../../src/http/guides/guide-routes.ts";
import { desktop, leaveBrowser, openVisitor, phone } from "../support/chromium.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";

const root = join(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "headrace-guides-"));

let server: TestServer;

beforeAll(async () => {
  server = await startHeadrace();
});

afterAll(async () => {
  await server.close();
  leaveBrowser();
  rmSync(folder, { recursive: true });
});

test("a page of each kind is drawn in light and dark, on a phone and a desk, with nothing that the policy refuses", async () => {
  for (const size of [desktop, phone]) {
    await using visitor = await openVisitor({ at: server.url, size });
    const grounds = new Set<string>();
    for (const colorScheme of ["light", "dark"] as const) {
      await visitor.page.emulateMedia({ colorScheme });
      for (const path of ["/docs", "/docs/getting-started", "/docs/reference/configuration"]) {
        await visitor.go(path);
        await visitor.page.locator(".VPDoc h1").waitFor();
        const isWider = await visitor.page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
        expect([path, isWider]).toEqual([path, false]);
      }
      grounds.add(await visitor.page.evaluate(() => getComputedStyle(document.body).backgroundColor));
      expect(await visitor.page.locator("p.version").first().textContent()).toBe("Version 0.1.0");
    }
    expect(grounds.size).toBe(2);
    expect(visitor.trouble).toEqual([]);
  }
}, 60_000);

test("the search finds a heading without asking any other host, and its result is a link that works", async () => {
  await using visitor = await openVisitor({ at: server.url });
  await visitor.go("/docs/");
  await visitor.page.getByRole("button", { name: /^Search/ }).click();
  await visitor.page.getByRole("searchbox").fill("tags and a note");
  await visitor.page.getByRole("option").first().click();
  await visitor.page.waitForURL("**/docs/keys#tags-and-a-note");
  expect(visitor.trouble).toEqual([]);
});

test("an old address of an endpoint in the reference leads to it, and a page that is not there says so", async () => {
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

function build(path: string): { out: string; status: number | null; stderr: string } {
  const out = join(path, "site");
  const { status, stderr } = spawnSync(process.execPath, [join(root, "site/build.ts"), "--root", path, "--out", out], {
    encoding: "utf8",
  });
  return { out, status, stderr };
}

test("a build with a version of before has both, each at its address, and the chooser leads from one to the other", async () => {
  const { out, status, stderr } = build(repository({ keys: "# Keys of now\n" }, { tag: "v0.1" }));
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
}, 60_000);

test("a link to a page that is not there fails the build, by name", () => {
  const { status, stderr } = build(repository({ keys: "# Keys\n\n[There](nothing.md)\n" }));
  expect([status, stderr]).toEqual([1, expect.stringContaining("docs/keys.md: the link to nothing.md leads nowhere")]);
}, 60_000);

test("a link to a heading that is not there fails the build, and so does a style in a page", () => {
  const made = mkdtempSync(join(folder, "made-"));
  const page = (body: string) => writeFileSync(join(made, "keys.html"), `<html><body>${body}</body></html>`);
  page('<h2 id="scopes"></h2><a href="#scopes"></a><a href="/docs/keys#scope"></a>');
  expect(() => publish(made, [""])).toThrow("keys: /docs/keys#scope");
  page('<p style="color:red"></p>');
  expect(() => publish(made, [""])).toThrow("keys.html: the policy of pages takes no inline style");
});
