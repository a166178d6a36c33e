// The owners of suspended calls, the memory that suspended calls hold, and how each call ends once.
import { expect, jest, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { ClientCall } from "./client-call.ts";
import { SuspendedCalls } from "./suspended-calls.ts";

function callFrom(changes: Partial<ClientCall> = {}): ClientCall {
  return {
    ...requestFrom(principalFor()),
    ...{ capabilities: {}, isAskable: false, cancellation: new Cancellation(), notify: () => {} },
    ask: () => Promise.reject(new Error("nobody is there")),
    ...changes,
  };
}

/** Sends one request to the client, and ends with the response. */
const asking = async (call: ClientCall): Promise<JsonObject> => ({ got: await call.ask("elicitation/create", {}) });

const subject = { server: "one", method: "tools/call", name: "look" };
const params = { name: "look", arguments: { text: "x".repeat(10_000) } };

async function begun(calls: SuspendedCalls, call = callFrom()) {
  const { requestState } = await calls.begin(call, subject, params, asking);
  return (client: ClientCall, responses: JsonObject = {}) =>
    calls.resume(client, requestState, responses, (other) => other === subject);
}

const answer = { ask_1: { action: "accept" } };

test("answers repeated requests for a suspended call, and keeps it when one of them is cancelled", async () => {
  jest.useFakeTimers();
  const calls = new SuspendedCalls();
  const resume = await begun(calls);
  // Both callers receive the server's request, and one timeout runs for the response.
  const both = await Promise.all([resume(callFrom()), resume(callFrom())]);
  expect(both.map((reported) => reported?.["resultType"])).toEqual(["input_required", "input_required"]);
  jest.advanceTimersByTime(4 * 60_000);
  await resume(callFrom());
  jest.advanceTimersByTime(2 * 60_000);
  jest.useRealTimers();
  const gone = callFrom();
  const [first, second] = [resume(gone, answer), resume(callFrom())];
  gone.cancellation.cancel();
  expect(await second).toEqual({ got: { action: "accept" } });
  await first?.catch(() => {});
});

test("counts a suspended call's parameters for its key until the call has ended in any way", async () => {
  const ledger = new BufferedBytes(16_000_000);
  const memoryAccount = ledger.memoryAccount(new AccountMemory());
  const calls = new SuspendedCalls();
  const answered = await begun(calls, callFrom({ memoryAccount }));
  expect(memoryAccount.total).toBeWithin(10_000, 11_000);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const fails = (call: ClientCall) => Promise.race([failed.promise, asking(call)]);
  await calls.begin(callFrom({ memoryAccount }), subject, params, fails);
  expect(memoryAccount.total).toBeWithin(20_000, 22_000);
  // The server fails while no client waits.
  failed.reject(new Error("gone"));
  await Bun.sleep(1);
  expect(memoryAccount.total).toBeWithin(10_000, 11_000);
  await answered(callFrom({ memoryAccount }), answer);
  expect(memoryAccount.total).toBe(0);
  ledger.maxBytes = 20_000;
  const full = callFrom({ memoryAccount: ledger.memoryAccount(new AccountMemory()) });
  await expect(calls.begin(full, subject, params, asking)).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});

// long-lived: mcpHeldCall.key, mcpHeldCall.account, mcpHeldCall.total
test("bounds suspended calls by key, by account and in total", async () => {
  const calls = new SuspendedCalls();
  const someone = principalFor();
  const [own] = someone.keys;
  const from = (account: string, key: string) => {
    const principal = {
      ...someone,
      account: { ...someone.account, id: account },
      keys: [{ ...own, id: key }] as const,
    };
    return callFrom({ principal });
  };
  const refused = (account: string, key: string) =>
    begun(calls, from(account, key)).then(
      () => false,
      () => true,
    );
  for (let i = 0; i < 16; i++) await begun(calls, from("a", "k"));
  expect(await refused("a", "k")).toBe(true);
  for (let i = 16; i < 128; i++) await begun(calls, from("a", `k${i}`));
  expect(await refused("a", "another")).toBe(true);
  for (let i = 128; i < 512; i++) await begun(calls, from(`a${i}`, "k"));
  expect(await refused("b", "k")).toBe(true);
  calls.close();
});

// long-lived: mcpHeldCall.idle
test("ends a suspended call whose client does not return for five minutes", async () => {
  jest.useFakeTimers();
  try {
    const calls = new SuspendedCalls();
    const resume = await begun(calls);
    jest.advanceTimersByTime(5 * 60_000);
    await expect(resume(callFrom(), answer)).rejects.toThrow("requestState is unknown");
  } finally {
    jest.useRealTimers();
  }
});

// long-lived: mcpHeldCall.server
test("ends suspended calls when the gateway stops", async () => {
  const calls = new SuspendedCalls();
  const memoryAccount = new BufferedBytes(1e9).memoryAccount(new AccountMemory());
  const resume = await begun(calls, callFrom({ memoryAccount }));
  calls.close();
  await Bun.sleep(1);
  expect(memoryAccount.total).toBe(0);
  await expect(resume(callFrom(), answer)).rejects.toThrow("requestState is unknown");
});

test("gives each round of a suspended call its own state, and accepts only states that it issued", async () => {
  const calls = new SuspendedCalls();
  const twice = async (call: ClientCall) => ({
    got: [await call.ask("elicitation/create", {}), await call.ask("elicitation/create", {})],
  });
  const first = await calls.begin(callFrom(), subject, params, twice);
  const resume = (state: unknown, responses = {}) => calls.resume(callFrom(), state, responses, () => true);
  const second = await resume(first["requestState"], answer);
  expect(second?.["requestState"]).not.toBe(first["requestState"]);
  expect(await resume(first["requestState"], answer)).toEqual(second);
  for (const other of [`${first["requestState"]}1`, String(second?.["requestState"]).replace(/2$/, "3"), "held_1.1"]) {
    await expect(resume(other)).rejects.toThrow("requestState is unknown");
  }
  expect(await resume(second?.["requestState"], { ask_2: { action: "decline" } })).toEqual({
    got: [{ action: "accept" }, { action: "decline" }],
  });
});

test("names missing capabilities when a call fails for want of them, and else passes the result on", async () => {
  let isNeeded = true;
  const link = new TestLink(
    serving([{ name: "sign", inputSchema: { type: "object" } }], async (_method, _params, exchange) => {
      const refused = await exchange.asked?.("elicitation/create", {}).catch((error: Error) => error.message);
      return { result: { content: [{ type: "text", text: String(refused) }], isError: isNeeded } };
    }),
    { isLegacy: true },
  );
  const { handler, ended } = handlerFor([[mcpServerFor("one"), link]]);
  const sign = (call: ClientCall) => handler.answer("tools/call", { name: "one_sign", arguments: {} }, call);
  await expect(sign(callFrom())).rejects.toMatchObject({
    code: -32_021,
    message: expect.stringContaining("elicitation. It said: The client has no elicitation capability."),
    data: { requiredCapabilities: { elicitation: {} } },
  });
  expect(ended).toEqual(["one tools/call sign failed upstream_error false"]);
  // A client of an earlier revision does not know this error.
  expect(await sign(callFrom({ isAskable: true }))).toMatchObject({ isError: true });
  isNeeded = false;
  expect(await sign(callFrom())).toMatchObject({ isError: false });
});
