// The memory that the check of a large request needs, with the default bounds.
import { expect, test } from "bun:test";
import { AccountMemory, bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { GuardedCall, Guarding } from "../../inference/guarding.ts";
import { decodeRequest } from "../../requests/decode/decode-request.ts";
import type { GuardrailSettings } from "./model.ts";
import { ConfiguredGuardrails } from "./service.ts";

const common = { name: "check", sides: ["request"], action: "block", timeoutMs: 60_000, otherwise: "pass" } as const;

/** Checks a request of one key that holds only its body. `ask` is the judge's call. */
async function checked(megabytes: number, own: GuardrailSettings, ask: (call: { body: string }) => Promise<string>) {
  const memoryAccount = bufferedBytes.memoryAccount(new AccountMemory());
  const ownCalls = {
    async ask({ body, memoryAccount }: { body: string } & Pick<GuardedCall, "memoryAccount">) {
      const refusal = memoryAccount.take("requests", body.length);
      if (refusal) throw refusal;
      memoryAccount.release("requests", body.length);
      return await ask({ body });
    },
  };
  const guardrails = new ConfiguredGuardrails({ ownCalls, settings: () => [own], found: () => {} });
  const call = { requestId: "req_1", model: "m", memoryAccount, clientGone: new Cancellation() };
  const guarding: Guarding = guardrails.begin(["check"], { ...call, neverLeaves: false, priority: "normal" });
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(megabytes * 1e6) }] });
  const limits = { bodyBytes: 32 * 1024 * 1024, depth: 8, messages: 8 };
  const request = decodeRequest("chat", ByteSpan.of(body), limits);
  expect(memoryAccount.take("requests", body.length)).toBeUndefined();
  try {
    return await guarding.ofRequest(request);
  } finally {
    memoryAccount.release("requests", body.length);
    expect(memoryAccount.total).toBe(0);
  }
}

const judge = { ...common, kind: "judge", model: "judge", policy: "No cheese." } as const;
const passed = async () => JSON.stringify({ choices: [{ message: { content: '{"pass": true, "reason": "ok"}' } }] });

test("asks a service about 30 MB of text with the default memory", async () => {
  const lengths: number[] = [];
  using service = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    async fetch(request) {
      lengths.push((await request.text()).length);
      return Response.json({ action: "pass" });
    },
  });
  const http = { ...common, kind: "http", url: service.url.href, token: null, local: true } as const;
  expect(await checked(30, http, passed)).toBeUndefined();
  expect(lengths).toHaveLength(1);
  expect(lengths[0]).toBeGreaterThan(30e6);
});

test("advises no retry if the question to a judge never fits beside the request", async () => {
  for (const megabytes of [16, 20]) {
    const refusal = { code: "request_too_large", shouldRetry: false };
    await expect(checked(megabytes, judge, passed)).rejects.toMatchObject(refusal);
  }
});

test("asks a judge about 14 MB of text, and advises a retry if another request of the key has the room", async () => {
  expect(await checked(14, judge, passed)).toBeUndefined();
  const other = 20 * 1024 * 1024;
  bufferedBytes.add("requests", other);
  try {
    const refusal = { code: "service_unavailable", retryAfterSeconds: 2 };
    await expect(checked(14, judge, passed)).rejects.toMatchObject(refusal);
  } finally {
    bufferedBytes.add("requests", -other);
  }
});
