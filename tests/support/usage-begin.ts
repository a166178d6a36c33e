// A request as the ledger is told of it, for tests to which only its course matters.
import type { UsageBegin } from "../../src/domain/usage/usage.ts";

export const usageBegin: UsageBegin = {
  requestId: "req_1",
  at: 5,
  accountId: "acct_1",
  keyId: "key_1",
  appId: null,
  environment: "live",
  operation: "chat",
  model: "m",
  stream: true,
};
