// What the tests of management endpoints look at: everything that such an endpoint can change, and the form of a refusal.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import type { TestServer } from "../support/headrace.ts";

/** All that management can change. Refused credentials are noted in the audit log, which is no change. */
export function stateOf(server: TestServer): string {
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const rows = [
    "SELECT id, name, scopes, expires_at, revoked_at, allowed_ips, rate_limit, rate_limit_window, monthly_tokens, monthly_spend FROM api_keys ORDER BY id",
    "SELECT revision FROM credential_revision",
    "SELECT id FROM audit_log WHERE action <> 'credential.refused' ORDER BY id",
    "SELECT id, metadata, deleted_at FROM stored_chats ORDER BY id",
    "SELECT * FROM stored_chat_tags ORDER BY tag",
    "SELECT * FROM signing_keys",
  ].map((sql) => db.query(sql).all());
  db.close();
  return JSON.stringify(rows);
}

export async function refusal(response: Response): Promise<{ status: number; message: string; code: string }> {
  const text = await response.text();
  const { error, ...rest } = JSON.parse(text) as { error: Record<string, unknown> };
  const required = Object.keys(error).filter((name) => name !== "param");
  expect([required, Object.keys(rest)]).toEqual([["message", "type", "code"], []]);
  expect(Object.values(error).every((value) => typeof value === "string")).toBe(true);
  expect(text.length).toBeLessThan(1_000);
  return { status: response.status, message: String(error["message"]), code: String(error["code"]) };
}
