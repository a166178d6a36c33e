import { expect, test } from "bun:test";
import { quotaReason, whomToAsk } from "./limit-refusal.ts";

test.each([
  [{ owner: "account" }, "account_quota", "an operator of this server"],
  [
    { owner: "account", called: "end_user", filter: { tag: "user:a" } },
    "end_user_quota",
    "an owner or admin of the account",
  ],
  [{ owner: "organization" }, "organization_quota", "an operator of this server"],
  [{ owner: "account", filter: { tag: "team:blue" } }, "tag_quota", "an operator of this server"],
  [{ owner: "account", filter: { models: ["m"] } }, "account_quota", "an operator of this server"],
  [{ owner: "key" }, "key_quota", "the owner of the key"],
  [{ owner: "key", called: "member" }, "member_quota", "an owner or admin of the account"],
  [{ owner: "key", called: "member", filter: { tag: "a" } }, "tag_quota", "an owner or admin of the account"],
  [{ owner: "key", called: "app" }, "app_quota", "the person who allowed the app"],
] as const)("names the quota %j and the people who can raise it", (quota, reason, ask) => {
  expect([quotaReason(quota), whomToAsk(quota)]).toEqual([reason, ask]);
});
