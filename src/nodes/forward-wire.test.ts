// Tests the form in which one replica passes a request to another, also for requests of an earlier version.
import { expect, test } from "bun:test";
import { AccountMemory, BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { aboutText, readAbout } from "./forward-wire.ts";

const ledger = new BufferedBytes(1_000_000);
const asked = { requestId: "req_1", operation: "chat", model: "m", stream: true, width: 2 } as const;

test("tells another replica for which key and account a request holds bytes", () => {
  const ids = { key: "key_1", account: "acct_1" };
  const memoryAccount = ledger.memoryAccount(new AccountMemory(), ids);
  expect(readAbout(aboutText({ ...asked, body: "{}", memoryAccount }))).toEqual({ ...asked, holder: ids });
});

test("tells another replica a request's priority, and treats an unknown priority as the default", () => {
  const urgent = { ...asked, priority: "high" } as const;
  expect(readAbout(aboutText({ ...urgent, body: "{}", memoryAccount: ledger.visitors }))).toEqual(urgent);
  const text = Buffer.from(JSON.stringify({ ...asked, priority: "urgent" })).toString("base64url");
  expect(readAbout(text)).toEqual({ ...asked, priority: undefined });
});

test("accepts a request of an earlier version or without an account", () => {
  expect(readAbout(aboutText({ ...asked, body: "{}", memoryAccount: ledger.visitors }))).toEqual(asked);
  expect(readAbout(Buffer.from(JSON.stringify(asked)).toString("base64url"))).toEqual(asked);
});

test("tells another replica the MCP server, with the fields of its protocol only", () => {
  const tool = { requestId: "req_1", server: "files", method: "POST" } as const;
  const headers = { "mcp-session-id": "one", authorization: "Bearer secret" };
  const text = aboutText({ ...tool, headers, body: "{}", memoryAccount: ledger.visitors });
  expect(readAbout(text)).toEqual({ ...tool, headers: { "mcp-session-id": "one" } });
});
