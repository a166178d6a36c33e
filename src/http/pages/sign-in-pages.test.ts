import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openTestPages, type TestPages } from "../../../tests/support/page-visits.ts";

const password = "a horse that counts";
let pages: TestPages;

beforeAll(async () => {
  pages = await openTestPages();
  await pages.addMember(await pages.addPerson({ email: "ada@example.com", name: "Ada", password }), "owner");
});

afterAll(() => pages.close());

test("signs a user in, redirects to the requested page, and signs out", async () => {
  const visitor = pages.visitor();
  await visitor.get("/sign-in?next=%2Fdevice%3Fuser_code%3DABCD");
  const done = await visitor.submit("/sign-in", { email: " Ada@Example.com ", password });
  expect([done.status, done.location]).toEqual([303, "/device?user_code=ABCD"]);
  expect(done.headers["set-cookie"]).toContain("HttpOnly; SameSite=Lax");

  expect((await visitor.get("/sign-in")).location).toBe("/");
  expect((await visitor.get("/settings")).text).toContain("ada@example.com");
  const before = visitor.cookie;
  const out = await visitor.submit("/sign-out");
  expect([out.location, visitor.cookie]).toEqual(["/sign-in", ""]);
  visitor.cookie = before;
  expect((await visitor.get("/settings")).location).toBe("/sign-in?next=%2Fsettings");
});

test("starts a new session at each sign-in, never the browser's earlier one", async () => {
  const visitor = pages.visitor();
  const signIn = () => visitor.post("/sign-in", { email: "ada@example.com", password });
  await signIn();
  const first = visitor.cookie;
  await signIn();
  expect(visitor.cookie).not.toBe(first);
});

test("answers alike for a wrong password and for an unknown address", async () => {
  const pageFor = async (email: string) => {
    const visitor = pages.visitor();
    await visitor.get("/sign-in?next=%2Fdevice");
    const { status, text } = await visitor.submit("/sign-in", { email, password: "not the right one" });
    return { status, text: text.replaceAll(email, "EMAIL"), cookie: visitor.cookie };
  };
  const wrong = await pageFor("ada@example.com");
  expect(wrong).toEqual(await pageFor("nobody@example.com"));
  expect(wrong).toMatchObject({ status: 400, cookie: "" });
  expect(wrong.text).toContain('role="alert"');
});

test("keeps the entered address and the return path after a failure, but never the password", async () => {
  const visitor = pages.visitor();
  await visitor.get("/sign-in?next=%2Fdevice");
  const { text } = await visitor.submit("/sign-in", { email: "ada@example.com", password: "not the right one" });
  expect(text).toContain('value="ada@example.com"');
  expect(text).toContain('name="next" value="/device"');
  expect(text).not.toContain("not the right one");
});

test("shows an invalid email address beside its field", async () => {
  const { status, text } = await pages.visitor().post("/sign-in", { email: '"><b>', password });
  expect(status).toBe(400);
  const input = /<input id="email"[^>]*>/.exec(text)?.[0];
  expect(input).toContain('aria-invalid="true"');
  expect(input).toContain('aria-describedby="email-error"');
  expect(text).toContain('id="email-error">This must be');
  expect(text).not.toContain("<b>");
});

test("answers 429 with a retry time after too many failures", async () => {
  await pages.addPerson({ email: "eve@example.com", password });
  const visitor = pages.visitor();
  let visit = await visitor.get("/sign-in");
  for (let i = 0; i < 40 && visit.status !== 429; i++) {
    visit = await visitor.post("/sign-in", { email: "eve@example.com", password: "wrong wrong wrong" });
  }
  expect(visit.status).toBe(429);
  expect(visit.text).toContain("<h1>Sign in</h1>");
  expect(Number(visit.headers["retry-after"])).toBeGreaterThan(0);
});

describe("the redirect after sign-in", () => {
  test.each(["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example"])(
    "replaces the return path %p by the settings, in the address and in the form",
    async (next) => {
      const visitor = pages.visitor();
      const shown = await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`);
      expect(shown.text).toContain('name="next" value="/"');
      pages.clock.advance(600_000);
      const { location } = await visitor.submit("/sign-in", { email: "ada@example.com", password, next });
      expect(location).toBe("/");
      expect((await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`)).location).toBe("/");
      await visitor.get("/settings");
      expect((await visitor.submit("/sign-out", { next })).location).toBe("/sign-in");
    },
  );

  test("continues an app's request from a page, so that the form itself does not redirect", async () => {
    const visitor = pages.visitor();
    const next = "/oauth/authorize?client_id=app_1&state=a%26b";
    await visitor.get(`/sign-in?next=${encodeURIComponent(next)}`);
    const { status, text } = await visitor.submit("/sign-in", { email: "ada@example.com", password });
    expect(status).toBe(200);
    expect(visitor.cookie).not.toBe("");
    expect(text).toContain(`content="0;url=${next.replace("&", "&amp;")}"`);
    expect(text).toContain(`<a href="${next.replace("&", "&amp;")}">`);
  });
});

test("refuses sign-in and sign-out by another site's form", async () => {
  const visitor = pages.visitor();
  const foreign = { origin: "https://evil.example" };
  expect((await visitor.post("/sign-in", { email: "ada@example.com", password }, foreign)).status).toBe(403);
  expect(visitor.cookie).toBe("");
  await visitor.post("/sign-in", { email: "ada@example.com", password });
  expect((await visitor.post("/sign-out", {}, foreign)).status).toBe(403);
  expect((await visitor.post("/sign-out", {})).status).toBe(403);
  expect((await visitor.get("/settings")).status).toBe(200);
});

test("shows the button for single sign-on only with an identity provider", async () => {
  expect((await pages.visitor().get("/sign-in")).text).toContain("Example Works");
  const none = pages.visitor("", { singleSignOnName: () => undefined });
  expect((await none.get("/sign-in")).text).not.toContain("/sso/start");
});

test("names the setup link on the sign-in page while there are no users", async () => {
  const fresh = pages.visitor("", { isNew: async () => true });
  expect((await fresh.get("/sign-in")).text).toContain("headrace setup-link");
  expect((await pages.visitor().get("/sign-in")).text).not.toContain("setup-link");
});

test("lets browsers send the form's origin over plain HTTP", async () => {
  const plain = pages.visitor("", { formReferrerPolicy: () => "same-origin" });
  expect((await plain.get("/sign-in")).headers["referrer-policy"]).toBe("same-origin");
  expect((await pages.visitor().get("/sign-in")).headers["referrer-policy"]).toBeUndefined();
});
