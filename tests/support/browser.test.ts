// The browser that tests go through pages with does what real ones do, and refuses what they refuse.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Browser } from "./browser.ts";

const form = (attributes: string, inner: string) => `<main><form method="post" ${attributes}>${inner}</form></main>`;
const page = (body: string, headers: Record<string, string> = {}) =>
  new Response(body, { headers: { "content-type": "text/html", ...headers } });
const redirect = (status: number, location: string) => new Response(null, { status, headers: { location } });

let site: Bun.Server<undefined>;
let browser: Browser;
let received: { body: string; headers: Headers };

beforeAll(() => {
  site = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/cookies": () => {
        const response = redirect(303, "/received");
        response.headers.append("set-cookie", "a=1; Path=/; HttpOnly");
        response.headers.append("set-cookie", "b=2; Path=/; HttpOnly");
        return response;
      },
      "/cleared": () => page("", { "set-cookie": "a=; Path=/; Max-Age=0" }),
      "/form": () =>
        page(
          form(
            'action="/received"',
            `<input type="hidden" name="t" value="&quot;&amp;"><input name="n" required>
<input type="radio" name="r" value="1"><input type="radio" name="r" value="2" checked>
<select name="s"><option>x</option><option value="y" selected>Why</option></select>
<button name="d" value="no">No</button><button name="d" value="yes"> Yes,
 <b>please</b></button>`,
          ) + form('action="/received"', '<input type="hidden" name="t" value="2"><button>No</button>'),
          { "referrer-policy": "no-referrer" },
        ),
      "/strict": () =>
        page(form('action="/away"', "<button>Go</button>"), { "content-security-policy": "form-action 'self'" }),
      "/open": () =>
        page(form('action="/away"', "<button>Go</button>"), { "content-security-policy": "form-action 'self' https:" }),
      "/on": () => page('<meta http-equiv="refresh" content="0;url=/received">'),
      "/again": () => page(form('action="/repeat"', "<button>Go</button>")),
      "/repeat": () => redirect(307, "/received"),
      "/away": () => redirect(303, "https://app.example/callback?code=1"),
      "/loop": () => redirect(303, "/loop"),
      "/received": async (request) => {
        received = { body: await request.text(), headers: request.headers };
        return page(`<main><a href="/form"> The <i>form</i> </a></main>`);
      },
    },
  });
});

afterAll(() => site.stop(true));

async function at(path: string): Promise<Browser> {
  browser = new Browser(site.url.origin);
  await browser.open(path);
  return browser;
}

test("stores, sends and deletes cookies in the test browser", async () => {
  await at("/cookies");
  expect(received.headers.get("cookie")).toBe("a=1; b=2");
  await browser.open("/cleared");
  await browser.open("/received");
  expect(received.headers.get("cookie")).toBe("b=2");
});

test("submits hidden, chosen and filled fields with the pressed button in the test browser", async () => {
  await at("/received");
  await browser.follow("The form");
  await browser.press("Yes, please", { n: "ä b" });
  expect(Object.fromEntries(new URLSearchParams(received.body))).toEqual({
    t: '"&',
    n: "ä b",
    r: "2",
    s: "y",
    d: "yes",
  });
  expect(received.headers.get("origin")).toBe("null");
  expect(received.headers.get("sec-fetch-site")).toBe("same-origin");
  await browser.open("/form");
  await browser.press("No", {}, { t: "2" });
  expect(received.body).toBe("t=2");
});

test.each([
  ["a button", () => browser.press("Maybe"), 'no button "Maybe" at /form'],
  ["a field", () => browser.press("No", { n: "x", x: "1" }), "no field x"],
  ["a hidden field", () => browser.press("No", { n: "x", t: "1" }), "no field t"],
  ["what has to be filled in", () => browser.press("No"), "field n is empty"],
  ["a link", () => browser.follow("Elsewhere"), 'no link "Elsewhere"'],
])("reports %s that the test browser cannot press or fill in", async (_what, act, message) => {
  await at("/form");
  await expect((async () => act())()).rejects.toThrow(message);
});

test("follows a page's own redirect in the test browser", async () => {
  expect((await at("/on")).page.url.pathname).toBe("/received");
});

test("requests no outside address in the test browser, and applies a form's policy to redirects", async () => {
  expect((await at("/away")).page.leftFor?.href).toBe("https://app.example/callback?code=1");
  await at("/open");
  expect((await browser.press("Go")).leftFor?.host).toBe("app.example");
  await at("/strict");
  await expect(browser.press("Go")).rejects.toThrow("lets no form lead to https://app.example");
});

test("reports a redirect that resends a form or never ends as a fault in the test browser", async () => {
  await at("/again");
  await expect(browser.press("Go")).rejects.toThrow("answered with 307");
  await expect(at("/loop")).rejects.toThrow("More than 10 redirects");
});
