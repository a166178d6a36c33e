// Tests that the text of an answer is kept unchanged, within its limit, and counted on the request's account.
import { expect, test } from "bun:test";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { SaidText } from "./said-text.ts";

function keeping(maxBytes = 64 * 1024 * 1024) {
  const ledger = new BufferedBytes(maxBytes);
  return { ledger, said: new SaidText(ledger.memoryAccount(new AccountMemory())) };
}

test("keeps text across split characters and holds its bytes until it is released", () => {
  const { ledger, said } = keeping();
  const text = "a🚀é\n".repeat(5_000);
  for (const unit of text.split("")) said.text(unit);
  expect(said.whole).toBe(text);
  expect(ledger.byKind.continued).toBeGreaterThan(Buffer.byteLength(text) - 16_384);
  said.release();
  expect(ledger.total).toBe(0);
});

test("does not send half a character at the end", () => {
  const { said } = keeping();
  said.text("a\ud83d");
  expect(said.whole).toBeUndefined();
});

test.each([
  ["beyond 1 MiB", 64 * 1024 * 1024, 1_100_000],
  ["beyond what may be held", 16 * 1024, 20_000],
])("keeps no text and holds no bytes %s", (_why, maxBytes, length) => {
  const { ledger, said } = keeping(maxBytes);
  for (let at = 0; at < length; at += 1_000) said.text("x".repeat(1_000));
  expect([said.whole, ledger.total]).toEqual([undefined, 0]);
});
