// Tests that the gateway's own calls are limited in number and in bytes, and that a refused call holds nothing.
import { expect, test } from "bun:test";
import { AccountMemory, BufferedBytes, NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../base/cancellation.ts";
import type { InferenceDeps } from "./call.ts";
import { GatewayCalls, type Operator } from "./gateway-calls.ts";
import type { OwnPurpose } from "./own-calls.ts";

/** Returns calls that wait for the operator until the test reports that there is none. */
function waiting() {
  const none: ((operator: Operator | undefined) => void)[] = [];
  const ledger = new BufferedBytes(1_000_000);
  const calls = new GatewayCalls({
    inference: {} as InferenceDeps,
    operator: () => new Promise((resolve) => none.push(resolve)),
    requestLimits: () => ({ bodyBytes: 1_000_000, depth: 8, messages: 8 }),
    renderError: ({ message }) => message,
  });
  const memoryAccount = ledger.memoryAccount(new AccountMemory());
  const ask = (purpose: OwnPurpose, content = "Hello") =>
    calls.ask({
      ...{ purpose, operation: "chat", memoryAccount, neverLeaves: false, cancellation: new Cancellation() },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }),
    });
  return { ask, ledger, end: () => none.splice(0).map((resolve) => resolve(undefined)) };
}

test("limits the calls in flight for each purpose and in total, and refuses further ones at once", async () => {
  const { ask, end, ledger } = waiting();
  const first = Array.from({ length: 512 }, () => ask("guardrail"));
  const refused = ask("guardrail");
  await expect(refused).rejects.toThrow("gateway:guardrail");
  // A guardrail with `otherwise: pass` would let the request pass after any other error.
  await expect(refused).rejects.toBeInstanceOf(NoRoomError);
  const others = Array.from({ length: 512 }, () => ask("cache"));
  await expect(ask("shadow")).rejects.toThrow("gateway:shadow");
  expect(ledger.total).toBeGreaterThan(0);
  end();
  const ended = await Promise.allSettled([...first, ...others]);
  expect(ended.every(({ status }) => status === "rejected")).toBeTrue();
  expect(ledger.total).toBe(0);
  const again = ask("guardrail");
  end();
  await expect(again).rejects.toThrow("no account yet");
});

test("a call whose body exceeds its memory account is not made", async () => {
  const { ask, ledger } = waiting();
  await expect(ask("cache", "x".repeat(900_000))).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  expect(ledger.total).toBe(0);
});
