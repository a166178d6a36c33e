// Tests signing keys: one for all processes, published before it signs and for as long as its tokens may live.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Credentials, openCredentials, sealingKey, until } from "../../../tests/support/credentials.ts";
import { seal, unseal } from "./sealing.ts";
import { SigningKeys } from "./signing-keys.ts";

const day = 86_400;
const operator = { type: "operator" } as const;
let all: Credentials;

beforeEach(async () => {
  all = await openCredentials();
});

afterEach(() => all.close());

const origin = () => ({ nowSeconds: all.now.seconds, clientAddress: "192.0.2.1", requestId: "req_1" });
const states = (keys = all.signingKeys) => keys.list().map(({ state }) => state);
const kids = (keys = all.signingKeys) => keys.jwks().keys.map(({ kid }) => kid);

/** Runs `action` so that it has read the store when `faster` runs, and continues only after `faster`. */
async function overtaken(
  { signingSwitch }: Pick<Credentials, "signingSwitch">,
  action: () => Promise<unknown>,
  faster: () => Promise<unknown>,
): Promise<void> {
  const gate = Promise.withResolvers<void>();
  signingSwitch.held = gate.promise;
  const { answered } = signingSwitch;
  const running = action();
  await until(() => signingSwitch.answered > answered);
  await faster();
  signingSwitch.held = undefined;
  gate.resolve();
  await running;
}

describe("the first start", () => {
  test("creates one signing key at the first start, and none at a later one", async () => {
    await all.signingKeys.start();
    expect(states()).toEqual(["signing"]);
    const { id, privateKey } = await all.signingKeys.signer();
    expect([kids(), privateKey.extractable]).toEqual([[id], false]);
    const later = await all.startProcess();
    await later.signingKeys.start();
    expect(kids(later.signingKeys)).toEqual([id]);
  });

  test("creates one signing key if two processes start at once", async () => {
    const slower = await all.startProcess();
    const faster = () => all.signingKeys.start();
    await overtaken(slower, () => slower.signingKeys.start(), faster);
    expect(kids()).toHaveLength(1);
    expect(kids(slower.signingKeys)).toEqual(kids());
    const made = await all.audit.list({ action: "signing_key.created" }, { after: undefined, limit: 10 });
    expect(made.map(({ targetId }) => targetId)).toEqual(kids());
  });
});

test("publishes only the public members of the signing keys", async () => {
  await all.signingKeys.start();
  const text = /^[\w-]{43}$/;
  expect(all.signingKeys.jwks()).toEqual({
    keys: [
      {
        ...{ kty: "EC", crv: "P-256", x: expect.stringMatching(text), y: expect.stringMatching(text) },
        ...{ kid: expect.stringMatching(/^sig_/), use: "sig", alg: "ES256" },
      },
    ],
  });
});

test("seals a stored private key under its own id and secret", async () => {
  await all.signingKeys.start();
  const [stored] = await all.signingStore.listSigningKeys(all.now.seconds);
  if (!stored) throw new Error("not stored");
  expect(Object.keys(stored.publicJwk).sort()).toEqual(["crv", "kty", "x", "y"]);
  const jwk = JSON.parse(unseal(stored.sealedPrivateJwk, sealingKey, stored.id)) as { d: string };
  expect(jwk.d).toMatch(/^[\w-]{43}$/);
  expect(JSON.stringify(stored)).not.toContain(jwk.d);
  expect(() => unseal(stored.sealedPrivateJwk, sealingKey, "sig_other")).toThrow();
  expect(() => unseal(stored.sealedPrivateJwk, new Uint8Array(32), stored.id)).toThrow();
  expect(() => unseal(`${stored.sealedPrivateJwk.slice(0, -1)}!`, sealingKey, stored.id)).toThrow();
  expect(() => unseal("v0.abc", sealingKey, stored.id)).toThrow();
  expect(seal("same", sealingKey, "a")).not.toBe(seal("same", sealingKey, "a"));
});

describe("a rotation of signing keys", () => {
  test("publishes a new key ten minutes before it signs, and the old one until its last token expires", async () => {
    await all.signingKeys.start();
    const old = (await all.signingKeys.signer()).id;
    const info = await all.signingKeys.rotate(operator, origin());
    const activeAt = all.now.seconds + 600;
    expect(info).toMatchObject({ state: "upcoming", activeAt, createdAt: all.now.seconds, retiresAt: null });
    expect([kids(), states()]).toEqual([
      [old, info.id],
      ["signing", "upcoming"],
    ]);
    all.now.seconds = activeAt - 1;
    expect((await all.signingKeys.signer()).id).toBe(old);
    all.now.seconds = activeAt;
    expect((await all.signingKeys.signer()).id).toBe(info.id);
    expect(states()).toEqual(["verifying", "signing"]);
    // The last token of the old key was issued a second before, and lives a day.
    all.now.seconds = activeAt - 1 + day;
    expect(await all.signingKeys.verifier(old)).toBeDefined();
    all.now.seconds = activeAt + day + 3_600;
    expect(await all.signingKeys.verifier(old)).toBeUndefined();
    expect(kids()).toEqual([info.id]);
  });

  test("rotates after 90 days once, however many processes run", async () => {
    const other = await all.startProcess();
    for (const { signingKeys } of [all, other]) await signingKeys.start();
    all.now.seconds += 90 * day - 1;
    for (const { signingKeys } of [all, other]) await signingKeys.maintain();
    expect(states()).toEqual(["signing"]);
    all.now.seconds += 1;
    const slower = () => other.signingKeys.maintain();
    await overtaken(other, slower, () => all.signingKeys.maintain());
    for (const { signingKeys } of [all, other]) await signingKeys.maintain();
    expect([states(), states(other.signingKeys)]).toEqual([
      ["signing", "upcoming"],
      ["signing", "upcoming"],
    ]);
    all.now.seconds += 600;
    expect((await other.signingKeys.signer()).id).toBe((await all.signingKeys.signer()).id);
  });

  test("creates no second key while a rotation is upcoming", async () => {
    await all.signingKeys.start();
    const [first, second] = [
      await all.signingKeys.rotate(operator, origin()),
      await all.signingKeys.rotate(operator, origin()),
    ];
    expect(second).toEqual(first);
    expect(kids()).toHaveLength(2);
  });

  test("audits a rotation with its actor and origin", async () => {
    await all.signingKeys.start();
    const { id } = await all.signingKeys.rotate(operator, origin());
    const events = await all.audit.list({}, { after: undefined, limit: 10 });
    const [retired, created, first] = events.filter(({ action }) => action.startsWith("signing_key"));
    expect(retired).toMatchObject({ action: "signing_key.retired", actor: operator, clientAddress: "192.0.2.1" });
    expect(created).toMatchObject({ action: "signing_key.created", actor: operator, targetId: id });
    expect(first).toMatchObject({ action: "signing_key.created", actor: { type: "system" }, clientAddress: null });
  });
});

test("finds a key of another process by a token, with one lookup a second at most", async () => {
  await all.signingKeys.start();
  const other = await all.startProcess();
  await other.signingKeys.start();
  const { id } = await other.signingKeys.rotate(operator, origin());
  const looks = () => all.signingSwitch.calls["listSigningKeys"] ?? 0;
  all.now.ms += 1_000;
  expect(await all.signingKeys.verifier(id)).toBeDefined();
  const before = looks();
  await Promise.all(Array.from({ length: 50 }, (_, i) => all.signingKeys.verifier(`sig_${i}`)));
  expect(looks()).toBe(before);
  all.now.ms += 1_000;
  await Promise.all(Array.from({ length: 50 }, (_, i) => all.signingKeys.verifier(`sig_${i}`)));
  expect(looks()).toBe(before + 1);
});

test("does not restore revoked keys from a read that began before their revocation", async () => {
  await all.signingKeys.start();
  const { id: leaked } = await all.signingKeys.signer();
  const { signingSwitch } = all;
  const gate = Promise.withResolvers<void>();
  signingSwitch.held = gate.promise;
  const { answered } = signingSwitch;
  const slow = all.signingKeys.maintain();
  await until(() => signingSwitch.answered > answered);
  signingSwitch.held = undefined;
  const { id } = await all.signingKeys.replace(operator, origin());
  gate.resolve();
  await slow;
  expect(kids()).toEqual([id]);
  expect(await all.signingKeys.verifier(leaked)).toBeUndefined();
});

test.each([3_600, -3_600, day, -day])(
  "keeps a key for signing and verifying when the clock jumps by %i seconds",
  async (jump) => {
    await all.signingKeys.start();
    all.now.seconds += jump;
    await all.signingKeys.maintain();
    const { id } = await all.signingKeys.signer();
    expect(await all.signingKeys.verifier(id)).toBeDefined();
    all.now.seconds -= jump;
    await all.signingKeys.maintain();
    expect(await all.signingKeys.verifier((await all.signingKeys.signer()).id)).toBeDefined();
    expect(kids()).toHaveLength(1);
  },
);

describe("an unavailable store of signing keys", () => {
  test("keeps known signing keys while the store is unavailable, and answers 503 for unknown ones", async () => {
    await all.signingKeys.start();
    const { id } = await all.signingKeys.signer();
    all.signingSwitch.failure = new Error("disk gone");
    await all.signingKeys.maintain();
    all.now.ms += 60_000;
    expect((await all.signingKeys.signer()).id).toBe(id);
    expect(await all.signingKeys.verifier(id)).toBeDefined();
    await expect(all.signingKeys.verifier("sig_other")).rejects.toMatchObject({ code: "service_unavailable" });
    all.signingSwitch.failure = undefined;
    all.now.ms += 60_000;
    expect(await all.signingKeys.verifier("sig_other")).toBeUndefined();
  });

  test("refuses a rotation while the store is unavailable, and makes a due one later", async () => {
    await all.signingKeys.start();
    all.signingSwitch.failure = new Error("disk gone");
    await expect(all.signingKeys.rotate(operator, origin())).rejects.toMatchObject({ code: "service_unavailable" });
    all.now.seconds += 91 * day;
    await all.signingKeys.maintain();
    expect(states()).toEqual(["signing"]);
    all.signingSwitch.failure = undefined;
    await all.signingKeys.maintain();
    expect(states()).toEqual(["signing", "upcoming"]);
  });
});

test("replaces a key sealed with another secret at once, and still verifies its signatures", async () => {
  await all.signingKeys.start();
  const { id } = await all.signingKeys.signer();
  const { signingStore: store, clock, log } = all;
  const other = new SigningKeys({ store, sealingKey: new Uint8Array(32).fill(1), clock, log });
  await other.start();
  other.close();
  expect((await other.signer()).id).not.toBe(id);
  expect(await other.verifier(id)).toBeDefined();
  expect(log.lines.map(({ event }) => event)).toEqual(["signing_key_unreadable"]);
});
