// What people change of themselves: a name, and a password that takes the current one.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { openTestPeople, type TestPeople, testOrigin } from "../../tests/support/people.ts";
import type { Person } from "../domain/people/person.ts";
import { OwnAccount } from "./own-account.ts";

const current = "the current password";
const next = "another good password";

let all: TestPeople;
let ada: Person;
let own: OwnAccount;
let session: { id: string };

beforeEach(async () => {
  all = await openTestPeople();
  ada = await all.addPerson({ email: "ada@example.com", name: "Ada", password: current });
  own = new OwnAccount(all);
  ({ session } = await all.startSession(ada));
});

afterEach(() => all.close());

const change = (given: { current: string; next: string }, by = session, person = ada) =>
  own.changeOwnPassword({ person, session: by }, given, testOrigin);
const matches = async (password: string, email = "ada@example.com") =>
  Bun.password.verify(password, (await all.people.findByEmail(email))?.passwordHash ?? "");
const lastEvent = async () => (await all.audit.list({}, { after: undefined, limit: 1 })).at(0);

test("trims a name and audits its change, and ignores an equal one", async () => {
  expect(await own.renameSelf({ person: ada }, "  Ada Lovelace ", testOrigin)).toBe("Ada Lovelace");
  expect((await all.people.findPerson(ada.id))?.name).toBe("Ada Lovelace");
  const event = await lastEvent();
  expect(event).toMatchObject({
    ...{
      action: "person.updated",
      actor: { type: "person", id: ada.id },
      targetId: ada.id,
      clientAddress: "203.0.113.9",
    },
    detail: { name: { before: "Ada", after: "Ada Lovelace" } },
  });
  await own.renameSelf({ person: { ...ada, name: "Ada Lovelace" } }, "Ada Lovelace", testOrigin);
  expect(await lastEvent()).toEqual(event as NonNullable<typeof event>);
  await expect(own.renameSelf({ person: ada }, " ", testOrigin)).rejects.toThrow(/^name: /);
});

test("changes a password with the current one, and ends the other sessions", async () => {
  const [here, elsewhere] = [await all.startSession(ada), await all.startSession(ada)];
  await change({ current, next }, here.session);
  expect(await matches(next)).toBe(true);
  expect(await all.sessions.find(here.cookie, testOrigin)).toBeDefined();
  expect(await all.sessions.find(elsewhere.cookie, testOrigin)).toBeUndefined();
  expect(await lastEvent()).toMatchObject({ action: "password.changed", detail: { by: "person", first: false } });
});

test("names the field of a wrong current password or a weak new one", async () => {
  const { cookie } = await all.startSession(ada);
  await expect(change({ current: "a guess", next })).rejects.toThrow("current_password: is not your password.");
  await expect(change({ current, next: "short" })).rejects.toThrow(/^password: must be/);
  await expect(change({ current, next: "ada@example.com" })).rejects.toThrow(/^password: is your e-mail address/);
  expect(await matches(current)).toBe(true);
  expect(await all.sessions.find(cookie, testOrigin)).toBeDefined();
});

test("does not overwrite a password that a link set meanwhile", async () => {
  const { cookie } = await all.startSession(ada);
  const reset = await Bun.password.hash("set by the link", { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
  const people = {
    apply: all.people.apply.bind(all.people),
    async findByEmail(email: string) {
      const before = await all.people.findByEmail(email);
      await all.db`UPDATE people SET password_hash = ${reset} WHERE id = ${ada.id}`;
      return before;
    },
  };
  const racing = new OwnAccount({ ...all, people });
  const asked = racing.changeOwnPassword({ person: ada, session }, { current, next }, testOrigin);
  await expect(asked).rejects.toThrow("current_password: is not your password.");
  expect(await matches("set by the link")).toBe(true);
  expect(await all.sessions.find(cookie, testOrigin)).toBeDefined();
});

test("refuses even the right current password after ten wrong guesses", async () => {
  for (let i = 0; i < 10; i++)
    await expect(change({ current: `guess ${i}`, next })).rejects.toThrow("current_password");
  await expect(change({ current, next })).rejects.toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 60 });
  all.clock.advance(60_000);
  await change({ current, next });
  expect(await matches(next)).toBe(true);
});

test("lets a user without a password set the first one", async () => {
  const bob = await all.addPerson({ email: "bob@example.com" });
  expect(await own.hasPassword(bob)).toBe(false);
  await change({ current: "", next }, (await all.startSession(bob)).session, bob);
  expect(await own.hasPassword(bob)).toBe(true);
  expect(await matches(next, "bob@example.com")).toBe(true);
  expect(await lastEvent()).toMatchObject({ action: "password.changed", detail: { first: true } });
});
