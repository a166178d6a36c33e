import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { exchangeFor, incoming } from "../../../tests/support/exchange.ts";
import { openTestPeople, type StartedSession, type TestPeople } from "../../../tests/support/people.ts";
import { type BodyFault, RequestBodyError } from "../../http1/message.ts";
import { html } from "./html.ts";
import { type PageDeps, pageAnswer, readForm, redirectTo, signedInAt } from "./page.ts";

const own = "https://headrace.example";
let test_: TestPeople;
let session: StartedSession;
let deps: PageDeps;

beforeAll(async () => {
  test_ = await openTestPeople();
  session = await test_.startSession(await test_.addPerson({ email: "ada@example.com" }));
  deps = { sessions: test_.sessions, isOwnOrigin: (origin) => origin === own };
});

afterAll(() => test_.close());

interface Posted {
  origin?: string;
  site?: string;
  type?: string;
  body?: string;
  cookie?: string;
}

function posted({ origin, site, type = "application/x-www-form-urlencoded", body = "", cookie }: Posted) {
  const headers = {
    "content-type": type,
    ...(origin === undefined ? {} : { origin }),
    ...(site === undefined ? {} : { "sec-fetch-site": site }),
    ...(cookie === undefined ? {} : { cookie }),
  };
  return exchangeFor(incoming({ method: "POST", target: "/form", headers, body }));
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const { code, detail } = error as { code: string; detail?: string };
  return detail === undefined ? code : `${code} ${detail}`;
}

describe("a form without a signed-in user", () => {
  test.each([
    ["our own origin", { origin: own }],
    ["our own origin, as the browser says as well", { origin: own, site: "same-origin" }],
    ["a page without a referrer, of which the browser says that it is ours", { origin: "null", site: "same-origin" }],
  ])("accepts a form without a session from %s", async (_what, from) => {
    const fields = await readForm(posted({ ...from, body: "email=a%40b.example&name=A+B" }), deps, undefined);
    expect([...fields]).toEqual([
      ["email", "a@b.example"],
      ["name", "A B"],
    ]);
  });

  test.each([
    ["another site", { origin: "https://evil.example" }],
    ["another site that hides itself", { origin: "null", site: "cross-site" }],
    ["a neighbour of the same domain", { origin: "null", site: "same-site" }],
    ["our origin, of which the browser says otherwise", { origin: own, site: "cross-site" }],
    ["nothing that says where", {}],
    ["what is no browser", { site: "same-origin" }],
    ["a page that hides itself by plain http", { origin: "null" }],
  ])("refuses a form without a session from %s", async (_what, from) => {
    expect(await codeOf(readForm(posted(from), deps, undefined))).toStartWith("permission_denied form_origin");
  });
});

describe("a form of a signed-in user", () => {
  const from = (): Posted => ({ origin: own, cookie: session.cookie });

  test("accepts a form with the session's token, over plain HTTP without an origin too", async () => {
    for (const origin of [own, "null"]) {
      const exchange = posted({ ...from(), origin, body: `csrf=${session.csrfToken}&name=A` });
      const fields = await readForm(exchange, deps, await signedInAt(exchange, deps));
      expect(fields.get("name")).toBe("A");
    }
  });

  test.each(["", "csrf=", "csrf=wrong", `csrf=${"A".repeat(43)}`])(
    "refuses a form of a signed-in user with the token %p",
    async (body) => {
      const exchange = posted({ ...from(), body });
      const signedIn = await signedInAt(exchange, deps);
      expect(signedIn).toBeDefined();
      expect(await codeOf(readForm(exchange, deps, signedIn))).toBe("permission_denied form_csrf");
    },
  );

  test("refuses a form of a signed-in user from another site, whatever its token", async () => {
    const exchange = posted({ ...from(), origin: "https://evil.example", body: `csrf=${session.csrfToken}` });
    expect(await codeOf(readForm(exchange, deps, await signedInAt(exchange, deps)))).toBe(
      "permission_denied form_origin",
    );
  });
});

test("refuses a form that is JSON, too large or incomplete, or repeats a field", async () => {
  const read = (parts: Posted) => codeOf(readForm(posted({ origin: own, ...parts }), deps, undefined));
  expect(await read({ type: "application/json", body: "{}" })).toBe("unsupported_media_type");
  expect(await read({ body: "a=1&a=2" })).toBe("invalid_request");
  const failing = (fault: BodyFault) => {
    const exchange = posted({ origin: own });
    const readBody = () => Promise.reject(new RequestBodyError(fault, fault));
    return codeOf(readForm({ ...exchange, req: { ...exchange.req, readBody } }, deps, undefined));
  };
  expect(await failing("too_large")).toBe("request_too_large");
  expect(await failing("incomplete")).toBe("invalid_request");
});

describe("every page", () => {
  const { headers, body } = pageAnswer({ title: "<Title>", body: html`<h1>${"<b>"}</h1>`, continueTo: '/a"b' });

  test("forbids caching, framing and foreign scripts on every page, and isolates it from its opener", () => {
    expect(headers).toMatchObject({ "cache-control": "no-store", "cross-origin-opener-policy": "same-origin" });
    const policy = headers["content-security-policy"] ?? "";
    for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      expect(policy).toContain(rule);
    }
    expect(policy).not.toContain("unsafe");
  });

  test("escapes every page and gives it a language, a title and one main element", () => {
    expect(body).toContain('<html lang="en">');
    expect(body).toContain("<title>&lt;Title&gt; · Headrace</title>");
    expect(body).toContain('content="0;url=/a&quot;b"');
    expect(String(body).match(/<main/g)).toHaveLength(1);
  });

  test("puts no inline script or style into any page", () => {
    expect(body).not.toMatch(/<style| style=| on\w+="/);
    expect(body).not.toMatch(/<script(?! type="module" src="\/assets\/)/);
  });
});

test("leaves a page that returns to an app connected to its opener", () => {
  const { headers } = pageAnswer({ title: "Allow?", body: html``, opener: "kept" });
  expect(headers).not.toHaveProperty("cross-origin-opener-policy");
});

test("redirects with 303 and no-store", () => {
  const { status, headers } = redirectTo("/settings");
  expect(status).toBe(303);
  expect(headers).toEqual({ location: "/settings", "cache-control": "no-store" });
});
