// Tests set-up, invitations and new passwords: the pages behind one-time links.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testEvent } from "../../../tests/support/credentials.ts";
import { openTestPages, type TestPages } from "../../../tests/support/page-visits.ts";
import { linkDigest } from "../../accounts/link-token.ts";
import type { OneTimeLink } from "../../domain/people/person.ts";
import { newOpaqueToken } from "../../policy/credentials/opaque-token.ts";

const password = "a horse that counts";
let pages: TestPages;

beforeAll(async () => {
  pages = await openTestPages();
});

afterAll(() => pages.close());

// Each test begins an hour later, so that no attempt of an earlier test counts against its limits.
beforeEach(() => pages.clock.advance(3_600_000));

async function link(about: Partial<OneTimeLink> & Pick<OneTimeLink, "purpose">): Promise<string> {
  const token = newOpaqueToken();
  const now = pages.clock.nowSeconds();
  await pages.people.insertLink(
    {
      id: `lnk_${Bun.randomUUIDv7()}`,
      digest: linkDigest(token) ?? "",
      delivery: "shown",
      ...{ email: null, personId: null, accountId: null, role: null, usedAt: null, createdBy: null },
      createdAt: now,
      expiresAt: now + 3_600,
      ...about,
    },
    testEvent(now),
  );
  return token;
}

function invitation(email: string): Promise<string> {
  return link({ purpose: "invitation", email, accountId: pages.accountId, role: "admin" });
}

describe("the setup link", () => {
  test("creates an operator by the setup link, signs them in, and works once", async () => {
    const path = `/setup/${await link({ purpose: "setup" })}`;
    const visitor = pages.visitor();
    const form = await visitor.get(path);
    expect(form.status).toBe(200);
    expect(form.text).toContain('<span class="hint" id="email-hint">You sign in with this address.</span>');
    expect(form.text).not.toContain('id="name-hint"');
    const done = await visitor.submit(path, { email: "root@example.com", name: "Root", password });
    expect([done.status, done.location]).toEqual([303, "/"]);
    expect((await visitor.get("/settings")).text).toContain("root@example.com");
    expect((await pages.people.findByEmail("root@example.com"))?.isOperator).toBe(true);
    const again = await pages.visitor().post(path, { email: "eve@example.com", name: "Eve", password });
    expect(again.status).toBe(404);
    expect(await pages.people.findByEmail("eve@example.com")).toBeUndefined();
  });

  test("ends a known user's other sessions when the setup link is used, and clears caches of their logins", async () => {
    const known = await pages.addPerson({ email: "back@example.com", password: "a password that is lost" });
    const { cookie } = await pages.startSession(known);
    const path = `/setup/${await link({ purpose: "setup" })}`;
    const visitor = pages.visitor();
    await visitor.get(path);
    const before = pages.changes.grants;
    await visitor.submit(path, { email: "back@example.com", name: "Back", password });
    expect(pages.changes.grants).toBe(before + 1);
    expect((await pages.visitor(cookie).get("/settings")).status).toBe(303);
  });

  test.each([
    ["email", { email: "root", name: "Root", password }],
    ["name", { email: "r@example.com", name: "  ", password }],
    ["password", { email: "r@example.com", name: "Root", password: "too short" }],
  ])(
    "shows a wrong %s beside its field of the setup form, and keeps the other values and the link",
    async (field, entered) => {
      const path = `/setup/${await link({ purpose: "setup" })}`;
      const visitor = pages.visitor();
      await visitor.get(path);
      const { status, text } = await visitor.submit(path, entered);
      expect(status).toBe(400);
      expect(new RegExp(`<input id="${field}"[^>]*>`).exec(text)?.[0]).toContain('aria-invalid="true"');
      expect(text.match(/aria-invalid/g)).toHaveLength(1);
      expect(text.match(/autofocus/g)).toHaveLength(1);
      expect(text).toContain(`value="${entered.email}"`);
      expect(text).not.toContain(entered.password);
      expect(text).toContain("<title>Error: ");
      expect((await visitor.get(path)).status).toBe(200);
    },
  );
});

describe("an invitation", () => {
  test("shows the account and role of an invitation, and admits a new user", async () => {
    const path = `/invitations/${await invitation("new@example.com")}`;
    const visitor = pages.visitor();
    const { text } = await visitor.get(path);
    const account = await pages.accounts.findAccount(pages.accountId);
    expect(text).toContain(`Join ${account?.name}`);
    expect(text).toContain("Admin");
    const done = await visitor.submit(path, { name: "New", password });
    expect(done.location).toBe("/");
    expect((await visitor.get("/settings")).text).toContain("new@example.com");
    expect((await visitor.get(path)).status).toBe(404);
  });

  test("asks a known user to sign in first and returns to the invitation's button", async () => {
    const person = await pages.addPerson({ email: "known@example.com", password });
    const path = `/invitations/${await invitation("known@example.com")}`;
    const visitor = pages.visitor();
    const { text } = await visitor.get(path);
    const signIn = /href="(\/sign-in\?next=[^"]+)"/.exec(text)?.[1] ?? "";
    expect(text).not.toContain('type="password"');
    // A post of the form for new users, which the page did not show, does not take over the existing user, either.
    expect((await visitor.post(path, { name: "Eve", password: "the password of another" })).status).toBe(200);
    expect(await pages.people.membershipsOf(person.id)).toBeEmpty();

    await visitor.get(signIn);
    const back = await visitor.submit("/sign-in", { email: "known@example.com", password });
    expect(back.location).toBe(path);
    await visitor.get(back.location);
    expect((await visitor.submit(path)).location).toBe("/");
    expect(await pages.people.membershipsOf(person.id)).toMatchObject([{ role: "admin" }]);
  });

  test("does not accept an invitation by a forged form of another site", async () => {
    const person = await pages.addPerson({ email: "target@example.com" });
    const { cookie } = await pages.startSession(person);
    const path = `/invitations/${await invitation("target@example.com")}`;
    const visitor = pages.visitor(cookie);
    expect((await visitor.post(path, {}, { origin: "https://evil.example" })).status).toBe(403);
    expect((await visitor.post(path, {})).status).toBe(403);
    expect(await pages.people.membershipsOf(person.id)).toBeEmpty();
  });

  test("tells another signed-in user whom the invitation is for, and offers to sign out", async () => {
    const other = await pages.addPerson({ email: "other@example.com" });
    const { cookie } = await pages.startSession(other);
    const path = `/invitations/${await invitation("third@example.com")}`;
    const visitor = pages.visitor(cookie);
    const { text } = await visitor.get(path);
    expect(text).toContain("other@example.com");
    expect(text).toContain("third@example.com");
    expect(text).not.toContain(`action="${path}"`);
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
    await visitor.post(path, { csrf, name: "Third", password });
    expect(await pages.people.membershipsOf(other.id)).toBeEmpty();
    // Index 1 is the page's own sign-out form; the first is in the menu.
    expect((await visitor.submit("/sign-out", {}, 1)).location).toBe(path);
    expect((await visitor.get(path)).text).toContain('type="password"');
  });
});

describe("a new password", () => {
  test("answers every request for a new password alike, and sets it by the mailed link", async () => {
    const person = await pages.addPerson({ email: "lost@example.com", password });
    const elsewhere = pages.visitor((await pages.startSession(person)).cookie);
    const visitor = pages.visitor();
    const answerTo = async (email: string) => {
      await visitor.get("/reset");
      const { status, text } = await visitor.submit("/reset", { email });
      return { status, text: text.replaceAll(email, "EMAIL") };
    };
    expect(await answerTo("lost@example.com")).toEqual(await answerTo("nobody@example.com"));
    await pages.deps.links.settled();
    const path = /https:\/\/headrace\.example(\/reset\/\S+)/.exec(pages.mails.at(-1)?.text ?? "")?.[1] ?? "";
    await visitor.get(path);
    const refused = await visitor.submit(path, { password: "short" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('aria-describedby="password-error"');
    const before = pages.changes.grants;
    const done = await visitor.submit(path, { password: "another horse that counts" });
    expect(pages.changes.grants).toBe(before + 1);
    expect(done.location).toBe("/settings?done=password");
    expect((await visitor.get("/settings")).status).toBe(200);
    expect((await elsewhere.get("/settings")).status).toBe(303);
    expect((await pages.visitor().get(path)).status).toBe(404);
  });

  test("does not promise a mail for a new password if no mail is configured", async () => {
    const visitor = pages.visitor("", { links: pages.linksWithoutMail });
    expect((await visitor.get("/reset")).text).toContain("sends no mail");
    const { text } = await visitor.submit("/reset", { email: "lost@example.com" });
    expect(text).not.toContain("Check your mail");
  });

  test("answers 429 to too many requests for a new password", async () => {
    const visitor = pages.visitor();
    let visit = await visitor.get("/reset");
    for (let i = 0; i < 30 && visit.status !== 429; i++)
      visit = await visitor.submit("/reset", { email: "a@b.example" }).then(async (asked) => {
        if (asked.status === 200) await visitor.get("/reset");
        return asked;
      });
    expect(visit.status).toBe(429);
    expect(visit.text).toContain('action="/reset"');
    expect(visit.headers["retry-after"]).toBeDefined();
  });
});

test.each(["/setup/", "/invitations/", "/reset/"])(
  "gives the same answer of %s to every invalid link",
  async (start) => {
    const used = await link({ purpose: "setup" });
    const expired = await link({ purpose: "password_reset", personId: "usr_1", expiresAt: pages.clock.nowSeconds() });
    const visits = ["x", "%00", "a".repeat(3_000), start === "/setup/" ? expired : used, expired].map(async (token) => {
      const shown = await pages.visitor().get(start + token);
      const posted = await pages.visitor().post(start + token, { email: "a@b.example", name: "A", password });
      return [shown.status, posted.status, shown.text, posted.text];
    });
    const answers = await Promise.all(visits);
    for (const answer of answers) expect(answer).toEqual([404, 404, answers[0]?.[2], answers[0]?.[2]] as string[]);
  },
);
