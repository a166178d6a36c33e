// Converts codes and refresh tokens of the authorization server between rows and records.
import type { AuthorizationCode, DeviceCode, RefreshToken } from "../../../domain/people/oauth.ts";
import { integer, json, table, text, words } from "../../sql/table.ts";

export const authorizationCodes = table<AuthorizationCode>({
  digest: text,
  appId: text,
  personId: text,
  accountId: text,
  membershipId: text,
  environment: text,
  scopes: words,
  tools: json,
  quotas: json,
  resources: words,
  redirectUri: text,
  codeChallenge: text,
  createdAt: integer,
  expiresAt: integer,
  grantId: text,
});

export const refreshTokens = table<RefreshToken>({
  digest: text,
  grantId: text,
  resources: words,
  createdAt: integer,
  expiresAt: integer,
  usedAt: integer,
  sealedAnswer: text,
});

export const deviceCodes = table<DeviceCode>({
  digest: text,
  userCode: text,
  appId: text,
  environment: text,
  scopes: words,
  tools: json,
  quotas: json,
  resources: words,
  createdAt: integer,
  expiresAt: integer,
  intervalSeconds: integer,
  polledAt: integer,
  state: text,
  personId: text,
  accountId: text,
  membershipId: text,
  grantId: text,
});
