import { expect, test } from "bun:test";
import { accountFor, keyRecordFor } from "../../../tests/support/principal.ts";
import type { Account } from "../../domain/account.ts";
import type { PublishedApp } from "../../domain/people/app.ts";
import type { OwnMembership } from "../../domain/people/person.ts";
import type { ApiKeyRecord } from "../../domain/principal.ts";
import { answerLocation } from "./answer.ts";
import { checks } from "./checks.ts";
import { allowedAlready, hasCredential } from "./consent.ts";
import { clientRequest, validRequest } from "./flow.ts";
import { Parameters } from "./parameters.ts";

const app: PublishedApp = {
  ...{ id: "app_1", accountId: "acct_1", personId: null, name: "Notes", publisher: "Ada", homepageUrl: null },
  ...{ type: "confidential", redirectUris: ["https://notes.example/callback"], scopes: ["usage:read", "chat:read"] },
  ...{
    environment: "live",
    tools: null,
    requirePkce: false,
    secrets: [],
    suspendedBy: null,
    createdBy: null,
    createdAt: 1,
  },
};

const issuer = "https://gateway.example";

async function judged(query: string, changes: Partial<PublishedApp> = {}) {
  const findApp = async (id: string) => (id === app.id ? { ...app, ...changes } : undefined);
  const client = await clientRequest(
    new Parameters(`client_id=app_1&${query}`),
    { apps: { findApp }, findDocument: undefined },
    issuer,
  );
  return "reason" in client ? client.reason : validRequest(client);
}

test("accepts the minimal request of a confidential app, with all of its scopes in order", async () => {
  expect(await judged("response_type=code")).toMatchObject({
    redirectUri: "https://notes.example/callback",
    scopes: ["chat:read", "usage:read"],
  });
});

test.each<[string, Partial<PublishedApp>, string | undefined]>([
  ["a confidential app may leave the challenge out", {}, undefined],
  ["a confidential app that is marked may not leave the challenge out", { requirePkce: true }, "invalid_request"],
  ["a public app may not leave the challenge out, marked or not", { type: "public" }, "invalid_request"],
])("decides whether a PKCE challenge is required: %s", async (_, changes, error) => {
  const result = await judged("response_type=code", changes);
  if (error === undefined) expect(result).toMatchObject({ scopes: ["chat:read", "usage:read"] });
  else expect(result).toMatchObject({ error });
});

// hardening: A3
test("requires a valid challenge from any app that sends one", async () => {
  for (const rest of ["&code_challenge_method=plain", "", "&code_challenge_method=S256"]) {
    expect(await judged(`response_type=code&code_challenge=short${rest}`)).toMatchObject({ error: "invalid_request" });
  }
});

test("reports the first of several faults in the order of the table", async () => {
  expect(await judged("response_type=token&response_mode=fragment&scope=x&prompt=none+login&request=x")).toMatchObject({
    error: "request_not_supported",
  });
  expect(await judged("response_type=token&response_mode=fragment&scope=x")).toMatchObject({
    error: "unsupported_response_type",
  });
  expect(await judged("response_type=code&scope=x&prompt=none+login")).toMatchObject({ error: "invalid_scope" });
});

test("reports a fault of the client before any other", async () => {
  expect(await judged("redirect_uri=https://evil.example/&response_type=token")).toBe("redirect_uri_unregistered");
  expect(await judged("client_id=app_1&response_type=code")).toBe("client_id_repeated");
});

test("grants an app only tool scopes if it asks for tools without naming scopes", async () => {
  const scopes = ["chat:read", "tools:use"] as const;
  const tools = "response_type=code&resource=https://gateway.example/mcp";
  expect(await judged(tools, { scopes: [...scopes] })).toMatchObject({ scopes: ["tools:use"] });
  expect(await judged(`${tools}&scope=chat:read`, { scopes: [...scopes] })).toMatchObject({ scopes: ["chat:read"] });
  const both = `${tools}&resource=https://gateway.example/v1`;
  expect(await judged(both, { scopes: [...scopes] })).toMatchObject({ scopes: [...scopes] });
});

test("accepts any port of a loopback redirect address, and no other path", async () => {
  const redirectUris = ["http://127.0.0.1/callback"];
  const at = (address: string) =>
    judged(`response_type=code&redirect_uri=${encodeURIComponent(address)}`, { redirectUris });
  expect(await at("http://127.0.0.1:65535/callback")).toMatchObject({ redirectUri: "http://127.0.0.1:65535/callback" });
  for (const address of ["http://127.0.0.1:65536/callback", "http://127.0.0.1:80/other", "http://[::1]/callback"]) {
    expect([address, await at(address)]).toEqual([address, "redirect_uri_unregistered"]);
  }
});

test("asks for consent again with several accounts or if another program could take the answer", async () => {
  const request = await judged("response_type=code");
  if (typeof request === "string" || "error" in request) throw new Error("It was refused.");
  const membership = (id: string): OwnMembership => ({
    ...{ id, personId: "usr_1", accountId: `acct_${id}`, role: "member", seesAllUsage: false, createdAt: 1 },
    ...{ accountName: id, accountStatus: "active" },
  });
  const allowed = { scopes: request.scopes, tools: null };
  const oauth = { allowedBefore: async () => allowed };
  expect(await allowedAlready(request, [membership("1")], oauth, 1)).toEqual(allowed);
  expect(await allowedAlready(request, [membership("1"), membership("2")], oauth, 1)).toBeUndefined();
  const ofPublic = { ...request, app: { ...app, type: "public" as const } };
  for (const other of [ofPublic, { ...request, redirectUri: "http://127.0.0.1/callback" }]) {
    expect(await allowedAlready(other, [membership("1")], oauth, 1)).toBeUndefined();
  }
});

test("finds no credential for a suspended account or an ended key", async () => {
  const can = (account: Partial<Account>, key: Partial<ApiKeyRecord> = {}) =>
    hasCredential(
      { id: "mbr_1" },
      "live",
      { findChainById: async () => ({ account: accountFor(account), keys: [keyRecordFor(key)] }) },
      1,
    );
  expect([await can({}), await can({ status: "suspended" }), await can({}, { revokedAt: 1 })]).toEqual([
    ...[true, false, false],
  ]);
});

test("ignores unknown parameters, and accepts a repeated resource", async () => {
  const query =
    "response_type=code&nonce=1&nonce=2&resource=https://gateway.example/v1&resource=https://gateway.example/mcp&__proto__=x";
  expect(await judged(query)).toMatchObject({ scopes: ["chat:read", "usage:read"] });
});

test("repeats no input in error descriptions, which keep to RFC 6749", () => {
  const parameters = new Parameters('response_type="\\é&response_mode=<é>&scope=\\&code_challenge="é&prompt=none "é');
  const request = { parameters, app, redirectUri: "https://notes.example/callback", issuer };
  const faults = checks.flatMap((check) => check(request) ?? []);
  expect(faults.length).toBeGreaterThanOrEqual(5);
  for (const { description } of faults) expect(description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
});

test("does not let a state add parameters to the redirect", () => {
  const parameters = new Parameters(`state=${encodeURIComponent("1&code=theirs&iss=https://evil.example#")}`);
  const request = { parameters, redirectUri: "https://notes.example/callback" };
  const url = new URL(answerLocation(request, { code: "ours" }, "https://headrace.example"));
  expect([url.searchParams.getAll("code"), url.searchParams.getAll("iss"), url.hash]).toEqual([
    ["ours"],
    ["https://headrace.example"],
    "",
  ]);
});
