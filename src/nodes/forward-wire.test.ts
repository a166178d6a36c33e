// A request as one replica passes it to another: all that counts there, also for one of an earlier version.
import { expect, test } from "bun:test";
import { AccountBytes, HeldBytes } from "../base/bytes/held-bytes.ts";
import { aboutText, readAbout } from "./forward-wire.ts";

const ledger = new HeldBytes(1_000_000);
const asked = { requestId: "req_1", operation: "chat", model: "m", stream: true, width: 2 } as const;

test("another replica learns for which key and account a request holds bytes", () => {
  const ids = { key: "key_1", account: "acct_1" };
  const holder = ledger.holder(new AccountBytes(), ids);
  expect(readAbout(aboutText({ ...asked, body: "{}", holder }))).toEqual({ ...asked, holder: ids });
});

test("a request of an earlier version, or on nobody's account, is taken without", () => {
  expect(readAbout(aboutText({ ...asked, body: "{}", holder: ledger.visitors }))).toEqual(asked);
  expect(readAbout(Buffer.from(JSON.stringify(asked)).toString("base64url"))).toEqual(asked);
});
