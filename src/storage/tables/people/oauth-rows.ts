// Codes and refresh tokens of the authorization server between their rows and their records.
import type { Environment } from "../../../domain/api-key.ts";
import type { AuthorizationCode, DeviceCode, DeviceState, RefreshToken } from "../../../domain/people/oauth.ts";
import type { Scope } from "../../../domain/scope.ts";
import { integer, words } from "../credential-rows.ts";

type Integer = number | string;

export interface CodeRow {
  digest: string;
  app_id: string;
  person_id: string;
  account_id: string;
  membership_id: string;
  environment: string;
  scopes: string;
  redirect_uri: string | null;
  code_challenge: string | null;
  created_at: Integer;
  expires_at: Integer;
  grant_id: string | null;
}

export interface RefreshTokenRow {
  digest: string;
  grant_id: string;
  created_at: Integer;
  expires_at: Integer;
  used_at: Integer | null;
  sealed_answer: string | null;
}

export interface DeviceCodeRow {
  digest: string;
  user_code: string;
  app_id: string;
  environment: string;
  scopes: string;
  created_at: Integer;
  expires_at: Integer;
  interval_seconds: Integer;
  polled_at: Integer | null;
  state: string;
  person_id: string | null;
  account_id: string | null;
  membership_id: string | null;
  grant_id: string | null;
}

export function codeFromRow(row: CodeRow): AuthorizationCode {
  return {
    digest: row.digest,
    appId: row.app_id,
    personId: row.person_id,
    accountId: row.account_id,
    membershipId: row.membership_id,
    environment: row.environment as Environment,
    scopes: words(row.scopes) as Scope[],
    redirectUri: row.redirect_uri,
    codeChallenge: row.code_challenge,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    grantId: row.grant_id,
  };
}

export function codeToRow(code: AuthorizationCode): CodeRow {
  return {
    digest: code.digest,
    app_id: code.appId,
    person_id: code.personId,
    account_id: code.accountId,
    membership_id: code.membershipId,
    environment: code.environment,
    scopes: code.scopes.join(" "),
    redirect_uri: code.redirectUri,
    code_challenge: code.codeChallenge,
    created_at: code.createdAt,
    expires_at: code.expiresAt,
    grant_id: code.grantId,
  };
}

export function refreshTokenFromRow(row: RefreshTokenRow): RefreshToken {
  return {
    digest: row.digest,
    grantId: row.grant_id,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    usedAt: integer(row.used_at),
    sealedAnswer: row.sealed_answer,
  };
}

export function refreshTokenToRow(token: RefreshToken): RefreshTokenRow {
  return {
    digest: token.digest,
    grant_id: token.grantId,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    used_at: token.usedAt,
    sealed_answer: token.sealedAnswer,
  };
}

export function deviceCodeFromRow(row: DeviceCodeRow): DeviceCode {
  return {
    digest: row.digest,
    userCode: row.user_code,
    appId: row.app_id,
    environment: row.environment as Environment,
    scopes: words(row.scopes) as Scope[],
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    intervalSeconds: Number(row.interval_seconds),
    polledAt: integer(row.polled_at),
    state: row.state as DeviceState,
    personId: row.person_id,
    accountId: row.account_id,
    membershipId: row.membership_id,
    grantId: row.grant_id,
  };
}

export function deviceCodeToRow(code: DeviceCode): DeviceCodeRow {
  return {
    digest: code.digest,
    user_code: code.userCode,
    app_id: code.appId,
    environment: code.environment,
    scopes: code.scopes.join(" "),
    created_at: code.createdAt,
    expires_at: code.expiresAt,
    interval_seconds: code.intervalSeconds,
    polled_at: code.polledAt,
    state: code.state,
    person_id: code.personId,
    account_id: code.accountId,
    membership_id: code.membershipId,
    grant_id: code.grantId,
  };
}
