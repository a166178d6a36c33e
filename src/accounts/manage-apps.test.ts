// What an app is made of, who may change which, and which secrets it is known by.
import { describe, expect, test } from "bun:test";
import { keyRecordFor, principalFor } from "../../tests/support/principal.ts";
import type { App } from "../domain/people/app.ts";
import type { Role } from "../domain/people/role.ts";
import type { Principal } from "../domain/principal.ts";
import { keyDigest } from "../policy/credentials/key-digest.ts";
import type { CreateAppRequest } from "../wire/people/apps.ts";
import {
  appToWire,
  createApp,
  deleteApp,
  matchesSecret,
  requireApp,
  rotateAppSecret,
  updateApp,
} from "./manage-apps.ts";

const pepper = new Uint8Array(32).fill(5);
const now = 1_800_000_000;
const origin = { nowSeconds: now, clientAddress: "192.0.2.1", requestId: "req_1" };

const create = (request: Partial<CreateAppRequest> = {}, by = principalFor()) =>
  createApp(by, { name: "Notes", ...request }, { pepper, origin });
const rotate = (app: App, overlapSeconds = 60, by = principalFor()) =>
  rotateAppSecret(by, app, overlapSeconds, { pepper, origin });

function personFor(role: Role, id = "usr_1"): Principal {
  const membership = keyRecordFor({ id: "mbr_1_live", kind: "membership", personId: id, role });
  return principalFor({ keys: [membership], person: { id, role, isOperator: false, sessionId: "ses_1" } });
}

describe("a new app", () => {
  test("creates an app for its creator's account and environment, confidential, with few scopes by default", () => {
    const { app, secret, event } = create();
    expect(app).toEqual({
      id: expect.stringMatching(/^app_[0-9a-f-]{36}$/),
      accountId: "acct_1",
      personId: null,
      name: "Notes",
      homepageUrl: null,
      type: "confidential",
      redirectUris: [],
      scopes: ["chat:write", "models:read"],
      environment: "live",
      tools: null,
      requirePkce: false,
      suspendedBy: null,
      secrets: [
        {
          id: expect.stringMatching(/^sec_/),
          digest: keyDigest(secret ?? "", pepper),
          last4: secret?.slice(-4) ?? "",
          createdAt: now,
          expiresAt: null,
        },
      ],
      createdBy: "key_1",
      createdAt: now,
    });
    expect(event).toMatchObject({
      ...{ action: "app.created", actor: { type: "key", id: "key_1" }, accountId: "acct_1", targetId: app.id },
      ...{ at: now, clientAddress: "192.0.2.1", requestId: "req_1" },
    });
  });

  test("creates an app's secret of 256 random bits, which neither record nor event contains", () => {
    const { secret, ...rest } = create();
    expect(secret).toMatch(/^hrs_[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(rest)).not.toContain(secret?.slice(4, 30) ?? "");
    expect(create().secret).not.toBe(secret);
  });

  test("creates a public app without a secret and with PKCE", () => {
    const { app, secret } = create({ type: "public" });
    expect([secret, app.secrets, app.requirePkce]).toEqual([null, [], true]);
    expect(() => create({ type: "public", require_pkce: false })).toThrow("require_pkce: must be true");
    expect(create({ require_pkce: true }).app.requirePkce).toBe(true);
  });

  test("stores an app's scopes once each, in order", () => {
    const { app } = create({ scopes: ["usage:read", "chat:read", "usage:read"] });
    expect(app.scopes).toEqual(["chat:read", "usage:read"]);
  });

  test.each([
    [{ name: " \t" }, "name: "],
    [{ name: "a\u202eb" }, "name: "],
    [{ homepage_url: "http://notes.example/" }, "homepage_url: "],
    [{ redirect_uris: ["http://notes.example/"] }, "redirect_uris[0]: "],
  ])("refuses a new app with %j", (request, message) => {
    expect(() => create(request)).toThrow(message);
  });

  test("creates an app of a member for the member, and of an owner for the account", () => {
    expect(create({}, personFor("member")).app).toMatchObject({ personId: "usr_1", createdBy: "usr_1" });
    expect(create({}, personFor("owner")).app).toMatchObject({ personId: null, createdBy: "usr_1" });
    const key = keyRecordFor({ personId: "usr_1" });
    expect(create({}, principalFor({ keys: [key] })).app).toMatchObject({ personId: "usr_1", createdBy: "key_1" });
  });
});

test("lets no app manage apps, whatever its scopes", () => {
  const by = principalFor({ appId: "app_9" });
  const { app } = create();
  expect(() => create({}, by)).toThrow("Apps cannot manage");
  expect(() => updateApp(by, app, { name: "b" }, origin)).toThrow("Apps cannot manage");
  expect(() => rotate(app, 0, by)).toThrow("Apps cannot manage");
  expect(() => deleteApp(by, app, origin)).toThrow("Apps cannot manage");
});

describe("a change of an app", () => {
  test("writes only the named fields of an app, and audits before and after", () => {
    const { app } = create({ homepage_url: "https://notes.example/" });
    const change = updateApp(
      principalFor(),
      app,
      { homepage_url: null, redirect_uris: ["https://b.example/"] },
      origin,
    );
    expect(change?.changes).toEqual({ homepageUrl: null, redirectUris: ["https://b.example/"] });
    expect(change?.event).toMatchObject({ action: "app.updated", targetId: app.id });
    expect(change?.event.detail).toEqual({
      homepage_url: { before: "https://notes.example/", after: null },
      redirect_uris: { before: [], after: ["https://b.example/"] },
    });
  });

  test("writes nothing for a change without differences", () => {
    const { app } = create();
    expect(updateApp(principalFor(), app, {}, origin)).toBeUndefined();
    const same = { name: " Notes ", scopes: ["models:read", "chat:write"] as const, require_pkce: false };
    expect(updateApp(principalFor(), app, { ...same, scopes: [...same.scopes] }, origin)).toBeUndefined();
  });

  test("validates a change like a new app", () => {
    const { app } = create({ type: "public" });
    const change = (request: object) => () => updateApp(principalFor(), app, request, origin);
    expect(change({ require_pkce: false })).toThrow("require_pkce: must be true");
    expect(change({ name: "\n" })).toThrow("name: ");
    expect(change({ redirect_uris: ["data:,"] })).toThrow("redirect_uris[0]: ");
    expect(change({ homepage_url: "javascript:1" })).toThrow("homepage_url: ");
  });
});

describe("a rotation of an app's secret", () => {
  test("creates a new secret and returns when the old one ends", () => {
    const { app, secret: old } = create();
    const { secret, record, oldEndAt, event } = rotate(app, 3_600);
    expect(secret).toMatch(/^hrs_[A-Za-z0-9_-]{43}$/);
    expect(secret).not.toBe(old);
    expect(record).toMatchObject({ digest: keyDigest(secret, pepper), createdAt: now, expiresAt: null });
    expect(oldEndAt).toBe(now + 3_600);
    expect(event).toMatchObject({ action: "app.secret_rotated", targetId: app.id });
    expect(JSON.stringify([record, event])).not.toContain(secret.slice(4, 30));
  });

  test("refuses a rotation for a public app", () => {
    expect(() => rotate(create({ type: "public" }).app)).toThrow("A public app has no secret");
  });
});

describe("the visibility of an app", () => {
  const { app } = create();
  const own = { ...app, personId: "usr_1" };

  test("finds an app for its account and environment", () => {
    expect(requireApp(principalFor(), app, app.id)).toBe(app);
    expect(requireApp(personFor("admin", "usr_2"), own, app.id)).toBe(own);
    expect(requireApp(personFor("member"), own, app.id)).toBe(own);
  });

  test.each<[string, Principal, App | undefined]>([
    ["an unknown one", principalFor(), undefined],
    ["one of another account", principalFor(), { ...app, accountId: "acct_2" }],
    ["one of another environment", principalFor(), { ...app, environment: "test" }],
    ["the account's, for a member", personFor("member"), app],
    ["another member's, for a member", personFor("member", "usr_2"), own],
    ["another member's, for a member's key", principalFor({ keys: [keyRecordFor({ personId: "usr_2" })] }), own],
  ])("does not find an app that is %s", (_, principal, found) => {
    expect(() => requireApp(principal, found, "app_x")).toThrow("There is no app app_x.");
  });

  test("shortens a long unknown app id in the error", () => {
    expect(() => requireApp(principalFor(), undefined, "x".repeat(5_000))).toThrow(/^.{0,300}$/);
  });
});

describe("the secret of an app", () => {
  const { app, secret } = create();
  const next = rotate(app, 60);
  const [first] = app.secrets;
  const rotated = { secrets: [...(first ? [{ ...first, expiresAt: now + 60 }] : []), next.record] };

  test("accepts either of two secrets until it ends", () => {
    expect(matchesSecret(app, secret ?? "", pepper, now)).toBe(true);
    expect(matchesSecret(rotated, secret ?? "", pepper, now + 59)).toBe(true);
    expect(matchesSecret(rotated, secret ?? "", pepper, now + 60)).toBe(false);
    expect(matchesSecret(rotated, next.secret, pepper, now + 59)).toBe(true);
    expect(matchesSecret(rotated, next.secret, pepper, now + 60)).toBe(true);
  });

  test("rejects other texts, digests and secrets of another pepper", () => {
    for (const text of ["", "hrs_", `${secret}x`, secret?.slice(0, -1) ?? "", first?.digest ?? "", next.secret]) {
      expect(matchesSecret(app, text, pepper, now)).toBe(false);
    }
    expect(matchesSecret(app, secret ?? "", new Uint8Array(32), now)).toBe(false);
    expect(matchesSecret({ secrets: [] }, "", pepper, now)).toBe(false);
  });

  test("shows no ended secret and no digest", () => {
    const shown = (at: number) => appToWire({ ...app, ...rotated }, "An account", at).secrets;
    expect(shown(now).map(({ expires_at }) => expires_at)).toEqual([now + 60, null]);
    expect(shown(now + 60).map(({ id }) => id)).toEqual([next.record.id]);
    expect(JSON.stringify(appToWire(app, "An account", now))).not.toContain(first?.digest ?? "");
  });
});
