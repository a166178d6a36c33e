// The verdict if the key holds so many bytes that the service of a guardrail cannot be asked.
import { expect, test } from "bun:test";
import { AccountMemory, BufferedBytes, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { GuardedCall } from "../../inference/guarding.ts";
import { httpAsk } from "./http-service.ts";
import { Findings, type Rail, SideGuard } from "./side-guard.ts";

const texts = [{ text: "Buy cheese", before: "" }];

function guardOf(side: "request" | "answer", error: Error): SideGuard {
  const common = { name: "service", sides: [side], action: "block" } as const;
  const remote = { url: "http://guard.example", token: null, local: false, timeoutMs: 100, otherwise: "pass" } as const;
  const settings = { ...common, ...remote, kind: "http" } as const;
  const rail: Rail = { settings, patterns: undefined, ask: () => Promise.reject(error) };
  const call: Pick<GuardedCall, "clientGone"> = { clientGone: new Cancellation() };
  return new SideGuard(side, [rail], call as GuardedCall, new Findings(() => {}));
}

const noRoom = new NoRoomError("rate_limit_exceeded", "Retry when one of them has ended.");

test("refuses a request for lack of room instead of passing or blocking its texts", async () => {
  const guard = guardOf("request", noRoom);
  await expect(guard.ask(texts)).rejects.toBe(noRoom);
  expect(guard.blockedBy).toBeUndefined();
});

test("blocks an answer for lack of room, also with `otherwise: pass`", async () => {
  const guard = guardOf("answer", noRoom);
  expect(await guard.ask(texts)).toEqual([]);
  expect(guard.blockedBy).toBe("service");
});

test("passes texts after another failure of the service with `otherwise: pass`", async () => {
  expect(await guardOf("request", new Error("closed")).ask(texts)).toEqual(["Buy cheese"]);
});

test("rejects with the lack of room a question beyond the 512 that a service may have", async () => {
  using service = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  const common = { name: "service", sides: ["request"], action: "block", kind: "http" } as const;
  const remote = { url: service.url.href, token: null, local: true, timeoutMs: 60_000, otherwise: "pass" } as const;
  const ask = httpAsk({ ...common, ...remote });
  const clientGone = new Cancellation();
  const memoryAccount = new BufferedBytes(1_000_000).memoryAccount(new AccountMemory());
  const asked = { requestId: "req_1", model: "m", memoryAccount, clientGone, neverLeaves: false };
  const call: GuardedCall = { ...asked, priority: "normal" };
  const open = Array.from({ length: 512 }, () => ask(texts, "request", call).catch(() => undefined));
  await expect(ask(texts, "request", call)).rejects.toBeInstanceOf(NoRoomError);
  clientGone.cancel();
  await Promise.all(open);
});
