// What is signed or handed to clients to come back later: access tokens, webhook signatures, and cursors of lists.
import { expect, test } from "bun:test";
import type { SigningKey, SigningKeyStore } from "../../src/domain/people/signing-key.ts";
import { decodePosition, encodePosition } from "../../src/http/api/usage/request-query.ts";
import { decodeCursor, encodeCursor } from "../../src/http/api/usage/usage-query.ts";
import { signatureHeaders } from "../../src/notifications/delivery/signature.ts";
import { AccessTokens } from "../../src/policy/credentials/access-tokens.ts";
import { seal } from "../../src/policy/credentials/sealing.ts";
import { SigningKeys } from "../../src/policy/credentials/signing-keys.ts";
import { manualClock } from "../support/manual-clock.ts";
import { committed, expectCommitted } from "./committed.ts";

const sealingKey = Buffer.alloc(32, 5);
const privateJwk = {
  kty: "EC",
  crv: "P-256",
  x: "2S_O1FUWOJLbEow4OcMRKaDpQ-uBvcoLc7s-yEO-DHw",
  y: "ZwUlv1ShEYc4JO4R4xxWYW1LvJ_Wo3K8lgkinKZAwXw",
  d: "TURdT0175HuNCgiLoEUcx9bGnSv2oKvTiQnTNbPbsKk",
};
const { d: _, ...publicJwk } = privateJwk;
const signingKey: SigningKey = {
  ...{ id: "sig_1", publicJwk, sealedPrivateJwk: seal(JSON.stringify(privateJwk), sealingKey, "sig_1") },
  ...{ createdAt: 1_700_000_000, activeAt: 1_700_000_000, retiresAt: null },
};

test("issues an access token with the committed claims, and accepts one of an earlier version", async () => {
  const clock = manualClock(1_700_000_100);
  const audit = { append: async () => {} };
  const store = { listSigningKeys: async () => [signingKey] } as unknown as SigningKeyStore;
  const log = { info() {}, warn() {}, error() {} };
  const signingKeys = new SigningKeys({ store, sealingKey, clock, log });
  await signingKeys.start();
  const issuer = () => "https://gateway.example";
  const tokens = new AccessTokens({ ...{ signingKeys, issuer, audience: () => `${issuer()}/v1` }, audit, clock });
  const issue = async (resources: readonly string[]) => {
    const { accessToken } = await tokens.issueForGrant({
      ...{ grant: { id: "grt_1", accountId: "acct_1", environment: "live" }, personId: "usr_1", appId: "app_1" },
      ...{ scopes: ["chat:write", "tools:use"], resources, expiresIn: 3_600 },
    });
    return accessToken;
  };
  const parts = (token: string) => {
    const [head = "", claims = ""] = token.split(".").map((part) => Buffer.from(part, "base64url").toString());
    return `${head} ${claims.replace(/tok_[\w-]+/, "tok_<random>")}`;
  };
  const own = await issue(["/v1", "/mcp"]);
  const token = String(committed("access-token")["token"] ?? own);
  expectCommitted("access-token", { parts: parts(own), token });
  expect(parts(token)).toBe(parts(own));
  expect(await tokens.verify(token)).toMatchObject({
    token: {
      ...{ keyId: "grt_1", appId: "app_1", personId: "usr_1", environment: "live", resources: ["/v1", "/mcp"] },
      ...{ scopes: new Set(["chat:write", "tools:use"]), expiresAt: 1_700_003_700 },
    },
  });
  signingKeys.close();
});

test("signs a webhook and encodes cursors as committed, and reads the cursors", async () => {
  const secrets = [
    "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
  ];
  const headers = await signatureHeaders({ id: "evt_1", body: "{}", nowSeconds: 1_790_000_000 }, secrets);
  const query = { bucket: "day", groupBy: ["key", "app", "model"] } as unknown as Parameters<typeof encodeCursor>[0];
  const usage = { start: 1_789_948_800, groups: { key: "key_1", app: null, model: "m" } };
  const position = { at: 1_790_000_000, requestId: "req_1" };
  expectCommitted("signed", {
    "webhook headers": JSON.stringify(headers),
    "cursor of usage": encodeCursor(query, usage),
    "cursor of requests": encodePosition(position),
  });
  const found = committed("signed");
  expect(decodeCursor(query, String(found["cursor of usage"]))).toEqual(usage);
  expect(decodePosition(String(found["cursor of requests"]))).toEqual(position);
});
