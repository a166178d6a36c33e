// Links that work once: who makes them, what their holders get, and that everything else is nothing.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cookieHeader, openTestPeople, operators, type TestPeople, testOrigin } from "../../tests/support/people.ts";
import { accountFor, principalFor } from "../../tests/support/principal.ts";
import type { LogFields } from "../base/log.ts";
import type { AuditAction } from "../domain/audit.ts";
import type { MailMessage } from "../domain/people/mail.ts";
import type { Passkey, Person } from "../domain/people/person.ts";
import type { Role } from "../domain/people/role.ts";
import type { Principal } from "../domain/principal.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { OneTimeLinks } from "./links.ts";

const password = "a long enough password";
const ended = "This link was used already or has expired. Ask for a new one.";
const hourMs = 3_600_000;

let all: TestPeople;
let sent: MailMessage[];
let logged: [string, LogFields | undefined][];
let links: OneTimeLinks;

beforeEach(async () => {
  all = await openTestPeople();
  sent = [];
  logged = [];
  links = open({});
});

afterEach(() => all.close());

function open({ mail }: { mail?: (message: MailMessage) => Promise<void> }): OneTimeLinks {
  const write = (event: string, fields?: LogFields) => void logged.push([event, fields]);
  return new OneTimeLinks({
    ...{ people: all.people, sessions: all.sessions, clock: all.clock, limits: all.limits },
    publicOrigin: () => "https://models.example",
    firstAccountId: async () => all.accountId,
    mail: mail && { send: mail },
    log: { info: write, warn: write, error: write },
  });
}

const keepMail = async (message: MailMessage) => void sent.push(message);
const tokenOf = ({ url = "" }: { url?: string | undefined }) => url.slice(url.lastIndexOf("/") + 1);
const linkIn = (message: MailMessage | undefined) => /https:\S+/.exec(message?.text ?? "")?.[0] ?? "";
const guest = { name: "Ada", password };
const setUp = { email: "ada@example.com", name: "Ada", password };
const account = () => accountFor({ id: all.accountId, name: "First" });
const events = (action: AuditAction) => all.audit.list({ action }, { after: undefined, limit: 100 });

const isProven = async (email: string) => (await all.people.findByEmail(email))?.isEmailProven;

/** A passkey, which is there to be removed. */
async function addPasskey({ id: personId }: Person): Promise<void> {
  const passkey: Passkey = {
    ...{ id: `passkey of ${personId}`, personId, name: "Key", publicKey: "pk", counter: 0, transports: [] },
    ...{ backedUp: false, createdAt: all.clock.nowSeconds(), lastUsedAt: null },
  };
  const origin = { ...testOrigin, nowSeconds: all.clock.nowSeconds() };
  const about = { accountId: null, targetId: personId, detail: {} };
  await all.people.insertPasskey(passkey, auditEvent("passkey.added", { type: "person", id: personId }, origin, about));
}

async function signedIn(person: Person, role: Role, isOperator = false): Promise<Principal> {
  await all.addSession(person, `ses_${person.id}`);
  return principalFor({
    account: account(),
    scopes: new Set(isOperator ? ["admin:manage"] : []),
    person: { id: person.id, role, isOperator, sessionId: `ses_${person.id}` },
  });
}

async function owner(): Promise<{ person: Person; by: Principal }> {
  const person = await all.addPerson({ email: "owner@example.com" });
  await all.addMember(person, "owner");
  return { person, by: await signedIn(person, "owner") };
}

const invite = (by: Principal, email = "ada@example.com", role: Role = "member") =>
  links.invite({ by, account: account(), email, role, origin: testOrigin });

describe("the setup link", () => {
  test("creates an operator by the setup link, owner of the first account and signed in", async () => {
    const made = await links.createSetupLink({ type: "system" });
    expect(made.url).toMatch(/^https:\/\/models\.example\/setup\/[\w-]{43}$/);
    expect(made.expiresAt).toBe(all.clock.nowSeconds() + 86_400);
    const { person, cookie } = await links.acceptance.setup(tokenOf(made), setUp, testOrigin);
    expect(person).toMatchObject({ email: "ada@example.com", name: "Ada", isOperator: true });
    const current = await all.sessions.find(cookieHeader(cookie), testOrigin);
    expect(current?.signedIn).toMatchObject({ person, membership: { accountId: all.accountId, role: "owner" } });
    expect(await events("person.created")).toMatchObject([
      {
        actor: { type: "anonymous" },
        accountId: all.accountId,
        targetId: person.id,
        detail: { operator: true, role: "owner" },
      },
    ]);
  });

  test("uses the setup link once for many concurrent uses", async () => {
    const token = tokenOf(await links.createSetupLink());
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) =>
        links.acceptance.setup(token, { ...setUp, email: `p${i}@x.org` }, testOrigin),
      ),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await operators(all.people)).toBe(1);
    await expect(links.acceptance.setup(token, setUp, testOrigin)).rejects.toThrow(ended);
  });

  test("does not find a used setup link", async () => {
    const token = tokenOf(await links.createSetupLink());
    await links.acceptance.setup(token, setUp, testOrigin);
    expect(await links.find(token, "setup")).toBeUndefined();
  });

  test("ends the setup link after a day, or when there is a newer one", async () => {
    const [old, newer] = [await links.createSetupLink(), await links.createSetupLink()];
    expect(await links.find(tokenOf(old), "setup")).toBeUndefined();
    expect(await links.find(tokenOf(newer), "setup")).toBeDefined();
    all.clock.advance(24 * hourMs);
    expect(await links.find(tokenOf(newer), "setup")).toBeUndefined();
    await expect(links.acceptance.setup(tokenOf(newer), setUp, testOrigin)).rejects.toThrow(ended);
  });

  test("makes the operator an admin if the first account already has an owner", async () => {
    await owner();
    const { person } = await links.acceptance.setup(tokenOf(await links.createSetupLink()), setUp, testOrigin);
    expect(person.isOperator).toBe(true);
    expect(await all.people.membershipsOf(person.id)).toMatchObject([{ accountId: all.accountId, role: "admin" }]);
  });

  test("gives a known user a new password by the setup link, and ends their sessions", async () => {
    const ada = await all.addPerson({ email: "ada@example.com", password: "an earlier password" });
    const { cookie } = await all.startSession(ada);
    const token = tokenOf(await links.createSetupLink());
    const { person } = await links.acceptance.setup(token, setUp, testOrigin);
    expect(person.id).toBe(ada.id);
    expect(await all.people.findPerson(ada.id)).toMatchObject({ isOperator: true, name: "Ada" });
    expect(await all.sessions.find(cookie, testOrigin)).toBeUndefined();
    const hash = (await all.people.findByEmail("ada@example.com"))?.passwordHash ?? "";
    expect(await Bun.password.verify(password, hash)).toBe(true);
  });

  test.each([
    ["email", { ...setUp, email: "ada" }],
    ["name", { ...setUp, name: " " }],
    ["password", { ...setUp, password: "short" }],
    ["password", { ...setUp, password: setUp.email }],
  ])("keeps the setup link if %s is wrong, and reports the field", async (field, given) => {
    const token = tokenOf(await links.createSetupLink());
    await expect(links.acceptance.setup(token, given, testOrigin)).rejects.toThrow(new RegExp(`^${field}: `));
    expect(await links.find(token, "setup")).toBeDefined();
  });
});

describe("an invitation", () => {
  test("admits a new user with the invited address and role, signed in", async () => {
    const { person, by } = await owner();
    const made = await invite(by, " Ada@Example.com", "admin");
    expect(made.expiresAt).toBe(all.clock.nowSeconds() + 7 * 86_400);
    expect(made.url).toMatch(/^https:\/\/models\.example\/invitations\/[\w-]{43}$/);
    const joined = await links.acceptance.invitation(tokenOf(made), guest, testOrigin);
    expect(joined.person).toMatchObject({ email: "ada@example.com", name: "Ada", isOperator: false });
    const current = await all.sessions.find(cookieHeader(joined.cookie ?? ""), testOrigin);
    expect(current?.signedIn.membership).toMatchObject({ id: joined.membership.id, role: "admin" });
    const [added] = await events("member.added");
    expect(added).toMatchObject({
      ...{ actor: { type: "anonymous" }, accountId: all.accountId, targetId: joined.membership.id },
      detail: { person_id: joined.person.id, role: "admin", invited_by: person.id },
    });
    expect(await events("invitation.created")).toMatchObject([
      { actor: { type: "person", id: person.id }, detail: { email: "ada@example.com", role: "admin" } },
    ]);
    await expect(links.acceptance.invitation(tokenOf(made), guest, testOrigin)).rejects.toThrow(ended);
  });

  test("accepts an invitation only for a user signed in with its address", async () => {
    const { by } = await owner();
    const token = tokenOf(await invite(by));
    const [ada, eve] = [
      await all.addPerson({ email: "ada@example.com" }),
      await all.addPerson({ email: "eve@example.com" }),
    ];
    await expect(links.acceptance.invitation(token, { person: eve }, testOrigin)).rejects.toMatchObject({
      code: "permission_denied",
    });
    const joined = await links.acceptance.invitation(token, { person: ada }, testOrigin);
    expect(joined).toMatchObject({ person: ada, membership: { role: "member" }, cookie: undefined });
    expect(await all.people.membershipsOf(eve.id)).toEqual([]);
  });

  test("sets no password for a known address by an invitation, but asks to sign in", async () => {
    const { by } = await owner();
    const token = tokenOf(await invite(by));
    await all.addPerson({ email: "ada@example.com", password: "their own password" });
    await expect(links.acceptance.invitation(token, guest, testOrigin)).rejects.toThrow(/sign in first/);
    expect(await links.find(token, "invitation")).toBeDefined();
    const hash = (await all.people.findByEmail("ada@example.com"))?.passwordHash ?? "";
    expect(await Bun.password.verify(password, hash)).toBe(false);
  });

  test("creates no invitation for a member, or by a user without the right", async () => {
    const { by } = await owner();
    await expect(invite(by, "OWNER@example.com")).rejects.toThrow(/^email: is the address of a member/);
    const admin = await all.addPerson({ email: "admin@example.com" });
    await all.addMember(admin, "admin");
    await expect(invite(await signedIn(admin, "admin"), "x@x.org", "admin")).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(invite(principalFor({ account: account() }))).rejects.toMatchObject({ code: "permission_denied" });
    expect(await events("invitation.created")).toEqual([]);
  });

  test("ends an invitation with its creator's membership", async () => {
    await owner();
    const admin = await all.addPerson({ email: "admin@example.com" });
    const membership = await all.addMember(admin, "admin");
    const token = tokenOf(await invite(await signedIn(admin, "admin")));
    expect(await links.find(token, "invitation")).toBeDefined();
    const [event] = await events("invitation.created");
    if (!event) throw new Error("not audited");
    await all.people.removeMembership(membership.id, { ...event, id: "audit_x", actor: { type: "operator" } });
    await expect(links.acceptance.invitation(token, guest, testOrigin)).rejects.toThrow(ended);
  });

  test("ends every link of an operator that loses that right", async () => {
    const ada = await all.addPerson({ email: "ada@example.com" });
    const maker = await all.addPerson({ email: "operator@example.com", isOperator: true });
    await all.addPerson({ email: "other@example.com", isOperator: true });
    const by = await signedIn(maker, "member", true);
    const invitation = tokenOf(await invite(by, "accomplice@example.com", "owner"));
    const reset = tokenOf(await links.createReset({ by, personId: ada.id, origin: testOrigin }));
    const [event] = await events("invitation.created");
    if (!event) throw new Error("not audited");
    const unmade = { ...event, id: "audit_x", actor: { type: "operator" } } as const;
    await all.people.apply({ setOperator: { personId: maker.id, isOperator: false } }, unmade);
    expect(await links.find(reset, "password_reset")).toBeUndefined();
    await expect(links.acceptance.invitation(invitation, guest, testOrigin)).rejects.toThrow(ended);
  });

  test("does not let a user replace an invitation that the user could not withdraw", async () => {
    const { by } = await owner();
    const token = tokenOf(await invite(by, "next@example.com", "owner"));
    const admin = await all.addPerson({ email: "admin@example.com" });
    await all.addMember(admin, "admin");
    await expect(invite(await signedIn(admin, "admin"), "NEXT@example.com")).rejects.toMatchObject({
      code: "permission_denied",
    });
    expect(await links.find(token, "invitation")).toMatchObject({ role: "owner" });
    await invite(by, "next@example.com");
    expect(await links.find(token, "invitation")).toBeUndefined();
  });

  test("mails an invitation if mail is configured, and shows its link to no other user", async () => {
    const { by } = await owner();
    links = open({ mail: keepMail });
    const made = await invite(by);
    expect(made).toEqual({ id: made.id, url: undefined, expiresAt: made.expiresAt });
    expect(sent).toMatchObject([{ to: "ada@example.com", subject: "You are invited to Headrace" }]);
    const found = await links.find(tokenOf({ url: linkIn(sent[0]) }), "invitation");
    expect(found).toMatchObject({ id: made.id, delivery: "mail" });
    expect(await events("invitation.created")).toMatchObject([{ targetId: made.id, detail: { delivery: "mail" } }]);
  });

  test("shows a new link if mailing an invitation fails, and voids the mailed one", async () => {
    const { by } = await owner();
    const failing = (message: MailMessage) => keepMail(message).then(() => Promise.reject(new Error("no answer")));
    links = open({ mail: failing });
    const shown = await invite(by);
    expect(await links.find(tokenOf(shown), "invitation")).toMatchObject({ id: shown.id, delivery: "shown" });
    const arrived = tokenOf({ url: linkIn(sent[0]) });
    expect(arrived).not.toBe(tokenOf(shown));
    expect(await links.find(arrived, "invitation")).toBeUndefined();
    expect(logged.map(([event]) => event)).toEqual(["invitation_not_mailed"]);
  });

  test("limits invitations to a hundred an hour for an account", async () => {
    const { by } = await owner();
    for (let i = 0; i < 100; i++) await invite(by, `p${i}@example.com`);
    await expect(invite(by, "one@more.org")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  });
});

describe("a new password", () => {
  const ask = async (email: string, clientAddress = "203.0.113.9") => {
    await links.requestReset(email, { ...testOrigin, clientAddress });
    await links.settled();
  };

  test("drops the waiting mail for a new password at shutdown", async () => {
    const hanging = Promise.withResolvers<void>();
    const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    links = open({
      mail: (message) => {
        begun[sent.push(message) - 1]?.resolve();
        return hanging.promise;
      },
    });
    const emails = Array.from({ length: 5 }, (_, i) => `p${i}@example.com`);
    for (const email of emails) await all.addPerson({ email });
    for (const email of emails) await links.requestReset(email, testOrigin);
    await Promise.all(begun.map(({ promise }) => promise));
    const closed = links.close();
    hanging.resolve();
    await closed;
    expect(sent).toHaveLength(2);
    expect(logged.filter(([event]) => event === "password_reset_dropped")).toHaveLength(3);
  });

  test("sets a new password by a mailed link, and ends all other sessions", async () => {
    links = open({ mail: keepMail });
    const ada = await all.addPerson({ email: "ada@example.com", password: "an earlier password" });
    await all.addMember(ada, "member");
    const { cookie: before } = await all.startSession(ada);
    await ask("Ada@example.com");
    expect(sent).toMatchObject([{ to: "ada@example.com", subject: "Set a new password for Headrace" }]);
    const url = linkIn(sent[0]);
    expect(url).toMatch(/^https:\/\/models\.example\/reset\/[\w-]{43}$/);
    const { person, cookie } = await links.acceptance.passwordReset(tokenOf({ url }), password, testOrigin);
    expect(person).toEqual(ada);
    expect(await all.sessions.find(before, testOrigin)).toBeUndefined();
    const current = await all.sessions.find(cookieHeader(cookie), testOrigin);
    expect(current?.signedIn.membership?.accountId).toBe(all.accountId);
    const hash = (await all.people.findByEmail("ada@example.com"))?.passwordHash ?? "";
    expect(await Bun.password.verify(password, hash)).toBe(true);
    await expect(links.acceptance.passwordReset(tokenOf({ url }), password, testOrigin)).rejects.toThrow(ended);
    expect(await events("password.changed")).toMatchObject([{ targetId: ada.id, detail: { by: "link" } }]);
  });

  test("answers a request for a new password alike for known and unknown addresses, before any lookup", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    links = open({ mail: () => held });
    await all.addPerson({ email: "ada@example.com" });
    for (const email of ["ada@example.com", "nobody@example.com"]) {
      expect(await links.requestReset(email, testOrigin)).toBeUndefined();
    }
    release();
    await links.settled();
    expect((await events("password_reset.created")).map(({ actor }) => actor)).toEqual([{ type: "anonymous" }]);
  });

  test("ends a password link after an hour or with a newer one, and refuses a short password", async () => {
    links = open({ mail: keepMail });
    await all.addPerson({ email: "ada@example.com" });
    await ask("ada@example.com");
    await ask("ada@example.com");
    const [old, newer] = sent.map((message) => tokenOf({ url: linkIn(message) }));
    await expect(links.acceptance.passwordReset(old ?? "", password, testOrigin)).rejects.toThrow(ended);
    await expect(links.acceptance.passwordReset(newer ?? "", "short", testOrigin)).rejects.toThrow(/^password: /);
    all.clock.advance(hourMs - 1_000);
    expect(await links.find(newer ?? "", "password_reset")).toBeDefined();
    all.clock.advance(1_000);
    await expect(links.acceptance.passwordReset(newer ?? "", password, testOrigin)).rejects.toThrow(ended);
  });

  test("mails at most three password links an hour to an address, with unchanged answers", async () => {
    links = open({ mail: keepMail });
    await all.addPerson({ email: "ada@example.com" });
    for (let i = 0; i < 6; i++) await ask("ada@example.com", `192.0.2.${i}`);
    expect(sent).toHaveLength(3);
    const last = tokenOf({ url: linkIn(sent[2]) });
    expect(await links.find(last, "password_reset")).toBeDefined();
  });

  test("limits password requests to ten an hour for a client, for known and unknown addresses", async () => {
    for (let i = 0; i < 10; i++) await ask(`p${i}@example.com`);
    await expect(ask("p@example.com")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    await expect(ask("p@example.com", "198.51.100.1")).resolves.toBeUndefined();
    await expect(ask("no address")).rejects.toThrow(/^email: /);
  });

  test("reports a password request to the operator's log if there is no mail", async () => {
    const ada = await all.addPerson({ email: "ada@example.com" });
    await ask("ada@example.com");
    await ask("nobody@example.com");
    expect(logged).toEqual([["password_reset_asked", { person_id: ada.id }]]);
    const { by } = await owner();
    const about = { personId: ada.id, origin: testOrigin };
    await expect(links.createReset({ by, ...about })).rejects.toMatchObject({ code: "insufficient_scope" });
    const person = await all.addPerson({ email: "operator@example.com", isOperator: true });
    const operator = await signedIn(person, "member", true);
    const made = await links.createReset({ by: operator, ...about });
    expect(made.expiresAt).toBe(all.clock.nowSeconds() + 3_600);
    expect((await links.acceptance.passwordReset(tokenOf(made), password, testOrigin)).person.id).toBe(ada.id);
    expect(await events("password_reset.created")).toMatchObject([
      { actor: { type: "person", id: person.id }, targetId: ada.id },
    ]);
    await expect(links.createReset({ by: operator, ...about, personId: "usr_no" })).rejects.toMatchObject({
      code: "not_found",
    });
  });
});

describe("the proof of an address", () => {
  const ada = "ada@example.com";
  const resetByMail = async () => {
    links = open({ mail: keepMail });
    await links.requestReset(ada, testOrigin);
    await links.settled();
    return links.acceptance.passwordReset(tokenOf({ url: linkIn(sent.at(-1)) }), password, testOrigin);
  };
  const resetByHand = async (personId: string) => {
    const operator = await signedIn(
      await all.addPerson({ email: "operator@example.com", isOperator: true }),
      "member",
      true,
    );
    const made = await links.createReset({ by: operator, personId, origin: testOrigin });
    return links.acceptance.passwordReset(tokenOf(made), password, testOrigin);
  };

  test("proves an address by a mailed invitation, but not by a shown one or the setup link", async () => {
    const { by } = await owner();
    const shown = await links.acceptance.invitation(tokenOf(await invite(by, "shown@x.org")), guest, testOrigin);
    links = open({ mail: () => Promise.reject(new Error("refused")) });
    await links.acceptance.invitation(tokenOf(await invite(by, "failed@x.org")), guest, testOrigin);
    links = open({ mail: keepMail });
    await invite(by);
    const mailed = await links.acceptance.invitation(tokenOf({ url: linkIn(sent[0]) }), guest, testOrigin);
    await links.acceptance.setup(tokenOf(await links.createSetupLink()), { ...setUp, email: "root@x.org" }, testOrigin);
    expect([shown.person.isEmailProven, mailed.person.isEmailProven]).toEqual([false, true]);
    const addresses = ["shown@x.org", "failed@x.org", ada, "root@x.org"];
    expect(await Promise.all(addresses.map(isProven))).toEqual([false, false, true, false]);
  });

  test("does not prove an address when a signed-in user joins an account", async () => {
    const { by } = await owner();
    const person = await all.addPerson({ email: ada, isEmailProven: false });
    links = open({ mail: keepMail });
    await invite(by);
    await links.acceptance.invitation(tokenOf({ url: linkIn(sent[0]) }), { person }, testOrigin);
    expect(await isProven(ada)).toBe(false);
  });

  test("proves an address by a mailed reset, and then removes earlier passkeys once", async () => {
    const person = await all.addPerson({ email: ada, password: "an earlier password", isEmailProven: false });
    await addPasskey(person);
    expect((await resetByMail()).person).toEqual({ ...person, isEmailProven: true });
    expect([await isProven(ada), await all.people.listPasskeys(person.id)]).toEqual([true, []]);
    expect((await events("password.changed"))[0]?.detail).toEqual({
      ...{ by: "link", delivery: "mail", email_proven: true },
      ended: ["password", "passkeys", "sessions", "logins"],
    });
    await addPasskey(person);
    all.clock.advance(hourMs);
    await resetByMail();
    expect(await all.people.listPasskeys(person.id)).toHaveLength(1);
    expect((await events("password.changed"))[0]?.detail).toEqual({ by: "link", delivery: "mail" });
  });

  test("withdraws the proof of an address after a reset by an operator or the setup link", async () => {
    const person = await all.addPerson({ email: ada, password: "an earlier password" });
    await addPasskey(person);
    expect((await resetByHand(person.id)).person.isEmailProven).toBe(false);
    expect(await isProven(ada)).toBe(false);
    expect(await all.people.listPasskeys(person.id)).toHaveLength(1);
    await resetByMail();
    expect(await isProven(ada)).toBe(true);
    const { person: known } = await links.acceptance.setup(tokenOf(await links.createSetupLink()), setUp, testOrigin);
    expect([known.id, known.isEmailProven, await isProven(ada)]).toEqual([person.id, false, false]);
  });
});

test("accepts a link token only for its own purpose, and no other text", async () => {
  const { by } = await owner();
  const [setup, invitation] = [tokenOf(await links.createSetupLink()), tokenOf(await invite(by))];
  for (const [token, purposes] of [
    [setup, ["invitation", "password_reset"]],
    [invitation, ["setup", "password_reset"]],
    ["", ["setup"]],
    [setup.slice(1), ["setup"]],
    [`${setup}A`, ["setup"]],
    ["A".repeat(43), ["setup"]],
    [`%00${"A".repeat(40)}`, ["setup"]],
  ] as const) {
    for (const purpose of purposes) expect(await links.find(token, purpose)).toBeUndefined();
  }
  await expect(links.acceptance.setup(invitation, setUp, testOrigin)).rejects.toThrow(ended);
  await expect(links.acceptance.passwordReset(setup, password, testOrigin)).rejects.toThrow(ended);
});

test("stores no link token and no password in the database, the audit log or the log", async () => {
  const { by } = await owner();
  const made = [await links.createSetupLink(), await invite(by, "eve@example.com")];
  links = open({ mail: keepMail });
  await invite(by);
  await links.acceptance.invitation(tokenOf({ url: linkIn(sent[0]) }), guest, testOrigin);
  await links.requestReset("ada@example.com", testOrigin);
  await links.settled();
  const tokens = [...made, ...sent.map((message) => ({ url: linkIn(message) }))].map(tokenOf);
  expect(tokens).toHaveLength(4);
  const kept = JSON.stringify([
    ...[await all.db`SELECT * FROM one_time_links`, await all.db`SELECT * FROM audit_log`],
    ...[await all.db`SELECT * FROM people`, logged],
  ]);
  for (const secret of [...tokens, password]) {
    expect(secret.length).toBeGreaterThan(20);
    expect(kept).not.toContain(secret);
  }
});
