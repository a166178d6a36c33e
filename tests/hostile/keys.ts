// API keys of any kind for a running test server; every scope unless said otherwise.
import { scopes } from "../../src/domain/scope.ts";
import type { TestServer } from "../support/headrace.ts";
import { type MintOptions, mintKey, revokeMinted } from "../support/mint-key.ts";

/** Stores a key of the first account and gives the secret. */
export function addKey(server: TestServer, options: Partial<MintOptions> = {}): Promise<string> {
  return mintKey(server.dataDir, { scopes, accountId: server.firstKey.record.accountId, ...options });
}

/** Marks a key as revoked, as another process would. */
export function revokeKey(server: TestServer, key: string): Promise<void> {
  return revokeMinted(server.dataDir, key);
}
