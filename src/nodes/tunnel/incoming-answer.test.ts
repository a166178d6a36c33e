// Tests bytes that a node sent and nobody reads: held within the memory limit, released, and broken off if there is no
// memory for them.
import { afterEach, expect, test } from "bun:test";
import { RecordingSink } from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { AccountMemory, BufferedBytes, bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { IncomingAnswer } from "./incoming-answer.ts";

const { maxBytes } = bufferedBytes;
afterEach(() => {
  bufferedBytes.maxBytes = maxBytes;
});

function answerOf(memoryAccount: MemoryAccount = bufferedBytes.visitors) {
  const received: string[] = [];
  const owner = {
    grant: (bytes: number) => void received.push(`grant ${bytes}`),
    cancelled: () => void received.push("cancelled"),
  };
  return { answer: new IncomingAnswer(owner, 262_144, memoryAccount), received };
}

test("counts undelivered bytes of an answer as held until they are delivered or cancelled", () => {
  const before = bufferedBytes.byKind.tunnels;
  for (const end of ["flow", "cancel"] as const) {
    const { answer } = answerOf();
    answer.push(Buffer.alloc(10_000));
    expect(bufferedBytes.byKind.tunnels - before).toBeGreaterThanOrEqual(10_000);
    if (end === "flow") answer.flow(new RecordingSink());
    else answer.cancel();
    expect(bufferedBytes.byKind.tunnels).toBe(before);
  }
});

test("stops the node if an answer exceeds its memory account, and reports the reason", () => {
  bufferedBytes.maxBytes = bufferedBytes.total + 20_000;
  const { answer, received } = answerOf();
  answer.push(Buffer.alloc(60_000));
  expect(received).toEqual(["cancelled"]);
  const errors: unknown[] = [];
  answer.flow({ data() {}, end() {}, fail: (error) => void errors.push(error) });
  expect(errors).toEqual([expect.objectContaining({ code: expect.stringMatching(/rate_limit|service_un/) })]);
});

test("charges undelivered answers to their key alone, and lets another key's continue", () => {
  const ledger = new BufferedBytes(16 * 1024 * 1024);
  const [stalling, other] = [ledger.memoryAccount(new AccountMemory()), ledger.memoryAccount(new AccountMemory())];
  const answersOf = (memoryAccount: MemoryAccount, count: number) =>
    Array.from({ length: count }, () => answerOf(memoryAccount));
  const fill = (all: readonly ReturnType<typeof answerOf>[]) => {
    for (const { answer } of all) answer.push(Buffer.alloc(262_144));
    return all.filter(({ received }) => received.includes("cancelled")).length;
  };
  const stalled = answersOf(stalling, 60);
  expect(fill(stalled)).toBeGreaterThan(30);
  const others = answersOf(other, 8);
  expect(fill(others)).toBe(0);
  for (const { answer } of [...stalled, ...others]) answer.cancel();
  expect(ledger.total).toBe(0);
});
