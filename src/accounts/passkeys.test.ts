// Passkeys against a real authenticator in software: what is accepted, what is refused, and what that leaves behind.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createPrivateKey, type KeyObject, sign, X509Certificate } from "node:crypto";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { openTestPeople, type TestPeople } from "../../tests/support/people.ts";
import { type Oddities, SoftwareAuthenticator } from "../../tests/support/software-authenticator.ts";
import { GatewayError } from "../base/errors.ts";
import type { Person } from "../domain/people/person.ts";
import { FailedSignIns } from "./failed-sign-ins.ts";
import { maxPasskeys, Passkeys, relyingPartyId } from "./passkeys.ts";
import { Pending } from "./pending.ts";

const pageOrigin = "https://ai.example.com";
let world: TestPeople;
let failures: FailedSignIns;
let passkeys: Passkeys;
let person: Person;
let device: SoftwareAuthenticator;
let made = 0;

beforeAll(async () => {
  world = await openTestPeople();
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  failures = new FailedSignIns({ ...world, log });
  passkeys = new Passkeys({ ...world, failures });
});
afterAll(async () => {
  await failures.close();
  await world.close();
});
beforeEach(async () => {
  person = await world.addPerson({ email: `person${++made}@example.com` });
  device = new SoftwareAuthenticator(pageOrigin);
  for (const id of ["ses_1", "ses_2"]) await world.addSession(person, id);
});

function ceremony(origin = pageOrigin) {
  return { pageOrigin: origin, nowSeconds: world.clock.nowSeconds(), clientAddress: "203.0.113.9", requestId: "req_1" };
}

async function add(odd: Oddities = {}, session = "ses_1", name = "Laptop") {
  const options = await passkeys.additionOptions(person, session, pageOrigin);
  return await passkeys.add(person, session, { name, response: device.create(options, odd) }, ceremony());
}

async function signIn(odd: Oddities = {}) {
  const { challengeId, options } = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
  return await passkeys.signIn({ challengeId, response: device.get(options, odd) }, ceremony());
}

async function refusal(work: Promise<unknown>): Promise<{ code: string; detail: string | undefined }> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof GatewayError)) throw new Error(`no GatewayError, but ${String(error)}`);
  return { code: error.code, detail: error.detail };
}

function packed(signature: Buffer, certificate?: Buffer) {
  const statement = new Map<string, unknown>([
    ["alg", -7],
    ["sig", signature],
  ]);
  if (certificate) statement.set("x5c", [certificate]);
  return { format: "packed", statement };
}

async function events(action: "passkey.added" | "passkey.removed" | "sign_in.failed", targetId: string) {
  await failures.flush();
  return await world.audit.list({ action, targetId }, { after: undefined, limit: 10 });
}

describe("adding a passkey", () => {
  test("requests a discoverable passkey with user verification for this host, excluding existing ones", async () => {
    const first = await add();
    const options = await passkeys.additionOptions(person, "ses_1", pageOrigin);
    expect(options).toMatchObject({
      rp: { id: "ai.example.com" },
      user: { name: person.email, displayName: person.name },
      attestation: "none",
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      excludeCredentials: [{ id: first.id, transports: ["internal"] }],
    });
    expect(Buffer.from(options.challenge, "base64url").length).toBeGreaterThanOrEqual(32);
  });

  test("stores a new passkey and audits it without the key", async () => {
    const added = await add({}, "ses_1", "  Laptop ");
    expect(await passkeys.list(person.id)).toEqual([added]);
    expect(added).toMatchObject({ name: "Laptop", counter: 0, backedUp: true, lastUsedAt: null });
    const [event] = await events("passkey.added", added.id);
    expect(event).toMatchObject({ actor: { type: "person", id: person.id }, detail: { name: "Laptop" } });
    expect(JSON.stringify(event)).not.toContain(added.publicKey);
  });

  test("accepts a challenge to add a passkey in its own session, once, for five minutes", async () => {
    const options = await passkeys.additionOptions(person, "ses_1", pageOrigin);
    const given = { name: "Laptop", response: device.create(options) };
    expect(await refusal(passkeys.add(person, "ses_2", given, ceremony()))).toMatchObject({
      detail: "passkey_challenge",
    });
    world.clock.advance(299_000);
    await passkeys.add(person, "ses_1", given, ceremony());
    expect(await refusal(passkeys.add(person, "ses_1", given, ceremony()))).toMatchObject({
      detail: "passkey_challenge",
    });
    const late = {
      name: "Laptop",
      response: device.create(await passkeys.additionOptions(person, "ses_1", pageOrigin)),
    };
    world.clock.advance(300_000);
    expect(await refusal(passkeys.add(person, "ses_1", late, ceremony()))).toMatchObject({
      detail: "passkey_challenge",
    });
  });

  test.each<[string, Oddities]>([
    ["another origin", { origin: "https://ai.example.com.evil.example" }],
    ["another relying party", { rpId: "evil.example" }],
    ["another challenge", { challenge: Buffer.alloc(32).toString("base64url") }],
    ["a frame of another origin", { clientData: { crossOrigin: true } }],
    ["a frame that names its outermost page", { clientData: { topOrigin: "https://evil.example" } }],
    ["a frame, said in another form", { clientData: { crossOrigin: "true" } }],
    ["nobody verified", { userVerified: false }],
    ["an unknown attestation", { attestation: () => ({ format: "odd", statement: new Map() }) }],
    ["a statement with no attestation", { attestation: () => ({ format: "none", statement: new Map([["x", 1]]) }) }],
    ["a bad signature of its own", { attestation: (_, key) => packed(sign("sha256", Buffer.alloc(9), key)) }],
  ])("refuses a new passkey: %s", async (_, odd) => {
    expect(await refusal(add(odd))).toEqual({ code: "invalid_request", detail: "passkey_not_verified" });
    expect(await passkeys.list(person.id)).toEqual([]);
  });

  test("accepts self attestation", async () => {
    const attestation = (signed: Buffer, key: KeyObject) => packed(sign("sha256", signed, key));
    expect(await add({ attestation })).toMatchObject({ name: "Laptop" });
  });

  test("refuses an attestation with certificates, whose addresses would be fetched", async () => {
    const subject = "/C=US/O=Test/OU=Authenticator Attestation/CN=Test";
    const made = Bun.spawnSync([
      ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-subj", subject, "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "-", "-out", "-"],
    ]);
    const pem = made.stdout.toString();
    const certificate = new X509Certificate(pem).raw;
    const attestation = (signed: Buffer) => packed(sign("sha256", signed, createPrivateKey(pem)), certificate);
    expect(await refusal(add({ attestation }))).toMatchObject({ detail: "passkey_not_verified" });
  });

  test("refuses a malformed attestation", async () => {
    for (const attestationObject of ["", "AA", "gICAgICA", "v7-_v7-_"]) {
      const options = await passkeys.additionOptions(person, "ses_1", pageOrigin);
      const response = device.create(options);
      const broken = { ...response, response: { ...response.response, attestationObject } };
      const work = passkeys.add(person, "ses_1", { name: "x", response: broken }, ceremony());
      expect(await refusal(work)).toMatchObject({ detail: "passkey_not_verified" });
    }
  });

  test("does not take over another user's passkey", async () => {
    const options = await passkeys.additionOptions(person, "ses_1", pageOrigin);
    const given = { name: "Laptop", response: device.create(options) };
    await passkeys.add(person, "ses_1", given, ceremony());
    const other = await world.addPerson({ email: `other${made}@example.com` });
    await world.addSession(other, "ses_2");
    const { challenge } = await passkeys.additionOptions(other, "ses_2", pageOrigin);
    const client = { type: "webauthn.create", challenge, origin: pageOrigin };
    const clientDataJSON = Buffer.from(JSON.stringify(client)).toString("base64url");
    const response = { ...given.response, response: { ...given.response.response, clientDataJSON } };
    expect(await refusal(passkeys.add(other, "ses_2", { name: "x", response }, ceremony()))).toMatchObject({
      code: "invalid_request",
    });
    expect(await passkeys.list(other.id)).toEqual([]);
    expect(await signIn()).toMatchObject({ id: person.id });
  });

  test("limits a user to twenty passkeys", async () => {
    const waiting = await passkeys.additionOptions(person, "ses_2", pageOrigin);
    for (let i = 0; i < maxPasskeys; i++) await add();
    expect(await refusal(add())).toMatchObject({ code: "permission_denied" });
    const given = { name: "One more", response: device.create(waiting) };
    expect(await refusal(passkeys.add(person, "ses_2", given, ceremony()))).toMatchObject({
      code: "permission_denied",
    });
  });

  test.each(["", "  ", "x".repeat(61), "a\nb"])("refuses the name %p for a passkey", async (name) => {
    expect(await refusal(add({}, "ses_1", name))).toMatchObject({ code: "invalid_request" });
  });
});

describe("sign-in with a passkey", () => {
  test("signs in the owner of a passkey, and names no user to the browser before", async () => {
    await add();
    const { options } = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
    expect(options).toMatchObject({ rpId: "ai.example.com", userVerification: "required" });
    expect(options.allowCredentials ?? []).toEqual([]);
    expect(await signIn()).toEqual(person);
    expect((await passkeys.list(person.id))[0]?.lastUsedAt).toBe(world.clock.nowSeconds());
  });

  test("accepts a challenge to sign in once, for five minutes", async () => {
    await add();
    const { challengeId, options } = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
    const given = { challengeId, response: device.get(options) };
    await passkeys.signIn(given, ceremony());
    expect(await refusal(passkeys.signIn(given, ceremony()))).toMatchObject({ detail: "passkey_challenge" });
    const late = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
    world.clock.advance(300_000);
    const response = device.get(late.options);
    expect(await refusal(passkeys.signIn({ challengeId: late.challengeId, response }, ceremony()))).toMatchObject({
      detail: "passkey_challenge",
    });
  });

  test.each<[string, Oddities]>([
    ["another origin", { origin: "https://evil.example" }],
    ["another relying party", { rpId: "evil.example" }],
    ["another challenge", { challenge: Buffer.alloc(32).toString("base64url") }],
    ["a frame of another origin", { clientData: { crossOrigin: true } }],
    ["a frame that names its outermost page", { clientData: { topOrigin: "https://evil.example" } }],
    ["a frame, said in another form", { clientData: { crossOrigin: "true" } }],
    ["nobody verified", { userVerified: false }],
    ["somebody else's handle", { userHandle: Buffer.from("usr_other").toString("base64url") }],
  ])("refuses and audits a sign-in: %s", async (_, odd) => {
    const { id } = await add();
    expect(await refusal(signIn(odd))).toEqual({ code: "permission_denied", detail: "passkey: not_verified" });
    const [event] = await events("sign_in.failed", person.id);
    expect(event).toMatchObject({
      actor: { type: "anonymous" },
      detail: { method: "passkey", passkey: id, reason: "not_verified" },
    });
  });

  test("refuses a sign-in with a signature of another key", async () => {
    await add();
    const stranger = new SoftwareAuthenticator(pageOrigin);
    stranger.create(await passkeys.additionOptions(person, "ses_9", pageOrigin));
    const [known, foreign] = [device.passkeys[0], stranger.passkeys[0]];
    if (known && foreign) known.privateKey = foreign.privateKey;
    expect(await refusal(signIn())).toMatchObject({ detail: "passkey: not_verified" });
  });

  test("refuses a removed passkey in the same words as an unknown one", async () => {
    const { id } = await add();
    await passkeys.remove(id, person.id, ceremony());
    expect(await refusal(signIn())).toEqual({ code: "permission_denied", detail: "passkey: unknown_passkey" });
    expect(await events("passkey.removed", id)).toHaveLength(1);
  });

  test("refuses and audits a counter that does not grow, and accepts a growing or absent one", async () => {
    await add();
    await signIn();
    await signIn();
    const [passkey] = device.passkeys;
    if (!passkey) throw new Error("no passkey");
    passkey.counter = 7;
    await signIn();
    for (const counter of [7, 6, 0]) {
      passkey.counter = counter;
      expect(await refusal(signIn())).toEqual({ code: "permission_denied", detail: "passkey: counter_went_back" });
    }
    expect(await events("sign_in.failed", person.id)).toHaveLength(3);
    passkey.counter = 8;
    expect(await signIn()).toMatchObject({ id: person.id });
  });
});

test("limits the audit of refused passkeys to a hundred rows a minute and a count", async () => {
  const { id } = await add();
  // One of its own: what other tests refused counts as well.
  const own = new FailedSignIns({ ...world, log: { info: () => {}, warn: () => {}, error: () => {} } });
  const passkeys = new Passkeys({ ...world, failures: own });
  const attempt = async () => {
    const { challengeId, options } = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
    const response = device.get(options);
    response.response.signature = "AAAA";
    return refusal(passkeys.signIn({ challengeId, response }, ceremony()));
  };
  for (let n = 0; n < 130; n++) expect((await attempt()).detail).toBe("passkey: not_verified");
  await own.close();
  const rows = await world.audit.list(
    { action: "sign_in.failed", targetId: person.id },
    { after: undefined, limit: 200 },
  );
  expect(rows).toHaveLength(100);
  expect(rows[0]?.detail).toEqual({ reason: "not_verified", method: "passkey", passkey: id });
  const [counted] = await world.audit.list({ action: "sign_in.failed" }, { after: undefined, limit: 1 });
  expect(counted?.detail).toEqual({ reason: "suppressed", suppressed: 30, reasons: { not_verified: 30 } });
});

test("signs in neither by a passkey removed during the check nor twice by one counter", async () => {
  await add();
  const [passkey] = device.passkeys;
  if (!passkey) throw new Error("no passkey");
  passkey.counter = 5;
  const begun = [
    await passkeys.signInOptions(pageOrigin, "192.0.2.1"),
    await passkeys.signInOptions(pageOrigin, "192.0.2.1"),
  ];
  const uses = begun.map(({ challengeId, options }) => {
    passkey.counter = 5;
    return { challengeId, response: device.get(options) };
  });
  const both = await Promise.allSettled(uses.map((use) => passkeys.signIn(use, ceremony())));
  expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);

  passkey.counter = 9;
  const { challengeId, options } = await passkeys.signInOptions(pageOrigin, "192.0.2.1");
  const { people } = world;
  const findPerson = people.findPerson.bind(people);
  people.findPerson = async (id) => {
    await passkeys.remove(passkey.id.toString("base64url"), person.id, ceremony());
    return await findPerson(id);
  };
  const late = passkeys.signIn({ challengeId, response: device.get(options) }, ceremony());
  const { detail } = await refusal(late).finally(() => {
    people.findPerson = findPerson;
  });
  expect(detail).toBe("passkey: ended_meanwhile");
});

describe("a user's own passkeys", () => {
  test("renames and removes only the user's own passkeys", async () => {
    const { id } = await add();
    const other = await world.addPerson({ email: `other${made}@example.com` });
    expect(await refusal(passkeys.rename(id, other.id, "Mine"))).toMatchObject({ code: "not_found" });
    expect(await refusal(passkeys.remove(id, other.id, ceremony()))).toMatchObject({ code: "not_found" });
    await passkeys.rename(id, person.id, " Phone ");
    expect(await passkeys.list(person.id)).toMatchObject([{ id, name: "Phone" }]);
  });
});

describe("the relying party", () => {
  test.each([
    ["https://ai.example.com", "ai.example.com"],
    ["https://ai.example.com:8443", "ai.example.com"],
    ["http://localhost:7545", "localhost"],
    ["http://127.0.0.1:7545", undefined],
    ["http://[::1]:7545", undefined],
    ["https://192.0.2.1", undefined],
    ["http://ai.example.com", undefined],
  ])("derives the relying party of %s as %p", (origin, id) => {
    expect(relyingPartyId(origin)).toBe(id);
  });

  test("refuses both ceremonies without a relying party, with a remedy", async () => {
    const at = "http://127.0.0.1:7545";
    expect(await refusal(passkeys.signInOptions(at, "192.0.2.1"))).toMatchObject({ code: "permission_denied" });
    expect(await refusal(passkeys.additionOptions(person, "ses_1", at))).toMatchObject({ code: "permission_denied" });
  });
});

describe("pending ceremonies", () => {
  const kind = { name: "test", lifeSeconds: 10, most: 2 };

  // long-lived: beginning.total
  test("bounds pending entries by dropping the oldest, and returns none after its time", async () => {
    const clock = manualClock();
    const pending = new Pending<number>({ ...world.pending, clock }, kind);
    await pending.put("a", 1);
    clock.advance(6_000);
    await pending.put("b", 2);
    await pending.put("c", 3);
    expect(await pending.take("a")).toBeUndefined();
    clock.advance(9_000);
    expect(await pending.has("b")).toBe(true);
    expect(await pending.take("b")).toBe(2);
    expect(await pending.take("b")).toBeUndefined();
    clock.advance(1_000);
    expect(await pending.has("c")).toBe(false);
    expect(await pending.take("c")).toBeUndefined();
  });

  test("drops a pending entry of the network that has the most", async () => {
    const pending = new Pending<number>(world.pending, { ...kind, name: "fair", most: 4 });
    const waiting = pending.newKey("192.0.2.1");
    await pending.put(waiting, 1);
    const flood = Array.from({ length: 9 }, (_, i) => pending.newKey(`198.51.100.${i % 3}`));
    for (const key of flood) await pending.put(key, 2);
    expect(await pending.take(waiting)).toBe(1);
    const kept = await Promise.all(flood.map((key) => pending.take(key)));
    expect(kept.filter((value) => value !== undefined)).toHaveLength(3);
  });

  test("returns a pending entry once for many concurrent callers in several processes", async () => {
    const [here, there] = [new Pending<number>(world.pending, kind), new Pending<number>(world.pending, kind)];
    for (let round = 0; round < 5; round++) {
      await here.put("once", round);
      const taken = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? here : there).take("once")));
      expect(taken.filter((value) => value !== undefined)).toEqual([round]);
    }
  });

  test("stores pending entries and their keys unreadably", async () => {
    const pending = new Pending<string>(world.pending, kind);
    await pending.put("the key", "the value");
    const rows: unknown[] = await world.db`SELECT * FROM pending_entries WHERE kind = 'test'`;
    expect(JSON.stringify(rows)).not.toMatch(/the key|the value/);
    expect(await pending.take("the key")).toBe("the value");
  });

  test("deletes ended pending entries in the background", async () => {
    const pending = new Pending<number>(world.pending, { ...kind, most: 100 });
    await pending.put("old", 1);
    await world.pending.store.prune(world.clock.nowSeconds() + kind.lifeSeconds - 1);
    expect(await pending.has("old")).toBe(true);
    await world.pending.store.prune(world.clock.nowSeconds() + kind.lifeSeconds);
    const rows: unknown[] = await world.db`SELECT * FROM pending_entries WHERE kind = 'test'`;
    expect(rows).toEqual([]);
  });
});
