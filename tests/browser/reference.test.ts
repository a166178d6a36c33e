// In a real browser: the API reference is searched, read by keyboard, and begins with what it is about on a phone.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { desktop, leaveBrowser, openVisitor, phone } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { watchPage } from "../support/page-speed.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startHeadrace();
});
afterAll(async () => {
  leaveBrowser();
  await server[Symbol.asyncDispose]();
});

test("finds endpoints by purpose, and shows all for an empty search", async () => {
  await using visitor = await openVisitor({ at: server.url, size: desktop });
  await visitor.go("/docs/api");
  const { page } = visitor;
  const links = page.getByRole("navigation", { name: "Endpoints" }).locator("ul li a:visible");
  const all = await links.count();
  expect(all).toBeGreaterThan(80);
  await page.getByLabel("Find an endpoint").fill("rotate key");
  await page.getByText(/^\d+ endpoints?$/).waitFor();
  expect(await links.count()).toBeLessThan(all / 5);
  expect(await links.allTextContents()).toContain("POST /v1/keys/{id}/rotate");
  await page.getByLabel("Find an endpoint").press("Enter");
  expect(new URL(page.url()).hash).not.toBe("");
  await page.getByLabel("Find an endpoint").fill("no-such-thing");
  await page.getByText("Nothing found").waitFor();
  await page.getByLabel("Find an endpoint").fill("");
  expect(await links.count()).toBe(all);
  expect(visitor.trouble).toEqual([]);
});

test("keeps the reference's layout stable while it loads over a slow line", async () => {
  const answer = await server.request("/docs/api");
  const policy = answer.headers.get("content-security-policy") ?? "";
  const html = await answer.text();
  using slow = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(new ReadableStream({ pull: (body) => bitByBit(html, body) }), {
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": policy },
      }),
  });
  for (const size of [desktop, phone]) {
    await using visitor = await openVisitor({ at: slow.url.href, size });
    const watched = await watchPage(visitor.page);
    await visitor.go("/");
    expect((await watched.speed()).moved, String(size.width)).toEqual([]);
  }
});

/** First what is in view, so slowly that the browser draws it in between. */
async function bitByBit(html: string, body: ReadableStreamDefaultController): Promise<void> {
  const [pieceLength, pieces, pauseMs] = [1_000, 60, 20];
  for (let piece = 0; piece < pieces; piece++) {
    body.enqueue(Buffer.from(html.slice(piece * pieceLength, (piece + 1) * pieceLength)));
    await Bun.sleep(pauseMs);
  }
  body.enqueue(Buffer.from(html.slice(pieces * pieceLength)));
  body.close();
}

test("reaches each scrolling part of the reference by keyboard, with a name", async () => {
  await using visitor = await openVisitor({ at: server.url, size: phone });
  await visitor.go("/docs/api");
  const unreachable = await visitor.page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("main *")]
      .filter(
        (element) => element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX === "auto",
      )
      .filter((element) => element.tabIndex < 0 || !element.getAttribute("aria-label"))
      .map((element) => element.outerHTML.slice(0, 80)),
  );
  expect(unreachable).toEqual([]);
});

test("starts the reference with its heading on a phone, with a closed list of endpoints", async () => {
  await using visitor = await openVisitor({ at: server.url, size: phone });
  await visitor.go("/docs/api");
  const { page } = visitor;
  const heading = await page.getByRole("heading", { level: 1 }).boundingBox();
  expect(heading?.y).toBeLessThan(phone.height / 2);
  await page.getByText(/^All \d+ endpoints$/).click();
  await page.getByRole("navigation", { name: "Endpoints" }).getByRole("link").first().waitFor();
  expect(visitor.trouble).toEqual([]);
});
