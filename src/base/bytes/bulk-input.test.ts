// What comes in one go and is long to read is read in slices, over as many turns of the event loop as that takes.
import { afterEach, expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import { AccountMemory, BufferedBytes, bufferedBytes } from "./buffered-bytes.ts";
import { BulkInput, type BulkTaker, sliceBytes } from "./bulk-input.ts";

const before = bufferedBytes.byKind.received;
afterEach(() => expect(bufferedBytes.byKind.received).toBe(before));

/** A taker to whom each slice costs so many milliseconds. */
function taker(costMs = 0) {
  const it = {
    text: "",
    slices: 0,
    hushed: false,
    onSlice: () => {},
    takeSlice(bytes: Buffer) {
      const endMs = performance.now() + costMs;
      while (performance.now() < endMs);
      it.text += bytes.toString("latin1");
      it.slices++;
      it.onSlice();
    },
    hush() {
      it.hushed = true;
    },
    unhush() {
      it.hushed = false;
    },
  } satisfies BulkTaker & Record<string, unknown>;
  return it;
}

const slices = (count: number) => Buffer.alloc(count * sliceBytes, "0123456789");

test("reads all input in order and pauses its sender meanwhile", async () => {
  const one = taker(3);
  const input = new BulkInput(one);
  const bytes = slices(5);
  input.add(bytes);
  input.add(Buffer.from("end"));
  expect([one.hushed, input.waits]).toEqual([true, true]);
  await until(() => !one.hushed, "all is read");
  expect(one.text).toBe(`${bytes.toString("latin1")}end`);
});

test("shares a few milliseconds of each turn between large inputs, with other work in between", async () => {
  const all = Array.from({ length: 8 }, () => taker(2));
  let otherTurns = 0;
  let inTurn = 0;
  let maxInTurn = 0;
  for (const one of all) {
    one.onSlice = () => {
      inTurn++;
      maxInTurn = Math.max(maxInTurn, inTurn);
    };
    new BulkInput(one).add(slices(4));
  }
  const turn = () => {
    otherTurns++;
    inTurn = 0;
    if (all.some(({ hushed }) => hushed)) setImmediate(turn);
  };
  turn();
  await until(() => all.every(({ hushed }) => !hushed), "all is read");
  expect(all.map((one) => one.slices)).toEqual(Array(8).fill(4));
  expect(otherTurns).toBeGreaterThan(8);
  expect(maxInTurn).toBeLessThanOrEqual(4);
});

test("lengthens slices that are read quickly, and shortens slow ones", async () => {
  const one = taker();
  const input = new BulkInput(one);
  const lengths: number[] = [];
  input.stop(bufferedBytes.bounded);
  input.add(slices(20));
  input.goOn();
  for (const ms of [0.1, 0.1, 0.1, 1, 3, 3, 3]) {
    const readBytes = one.text.length;
    input.readSlice();
    input.tookMs(ms);
    lengths.push((one.text.length - readBytes) / sliceBytes);
  }
  expect(lengths).toEqual([1, 2, 4, 4, 4, 2, 1]);
  input.clear();
  await new Promise(setImmediate);
});

test("does not pause the sender of input that is read within its turn", () => {
  const one = taker();
  const input = new BulkInput(one);
  let hushes = 0;
  one.hush = () => void hushes++;
  for (let i = 0; i < 20; i++) {
    input.add(slices(2));
    input.finish();
  }
  // A turn is over sooner where another process has the processor meanwhile.
  expect(hushes).toBeLessThan(20);
});

test("passes nothing to a stopped receiver until it resumes, and frees bytes once abandoned", async () => {
  const one = taker();
  const input = new BulkInput(one);
  one.onSlice = () => void input.stop(bufferedBytes.bounded);
  input.add(slices(3));
  await new Promise(setImmediate);
  expect([one.slices, bufferedBytes.byKind.received - before]).toEqual([1, 2 * sliceBytes]);
  input.goOn();
  expect(one.slices).toBe(1);
  await until(() => one.slices === 2, "the next slice");
  input.clear();
  input.goOn();
  await new Promise(setImmediate);
  expect(one.slices).toBe(2);
});

test("charges waiting input of a stopped receiver to its key until it resumes or is cleared", async () => {
  const ledger = new BufferedBytes(16 * 1024 * 1024);
  const memoryAccount = ledger.memoryAccount(new AccountMemory());
  for (const end of ["go on", "clear"] as const) {
    const one = taker();
    const input = new BulkInput(one);
    one.onSlice = () => {
      if (one.slices === 1) expect(input.stop(memoryAccount)).toBeUndefined();
    };
    expect(input.add(slices(3))).toBeUndefined();
    expect([ledger.byKind.received, bufferedBytes.byKind.received - before]).toEqual([2 * sliceBytes, 0]);
    expect(input.add(slices(1))).toBeUndefined();
    expect(ledger.total).toBe(3 * sliceBytes);
    if (end === "clear") input.clear();
    else input.goOn();
    expect(ledger.total).toBe(0);
    if (end === "go on") await until(() => !one.hushed, "all is read");
  }
});

test("refuses more input to a key whose stopped receivers hold all its bytes, unlike other keys", () => {
  const ledger = new BufferedBytes(16 * 1024 * 1024);
  const [stalling, other] = [ledger.memoryAccount(new AccountMemory()), ledger.memoryAccount(new AccountMemory())];
  const stopped = (memoryAccount = stalling) => {
    const input = new BulkInput(taker());
    input.stop(memoryAccount);
    return { input, refusal: input.add(slices(8)) };
  };
  const all = Array.from({ length: 20 }, () => stopped());
  expect(all.filter(({ refusal }) => refusal)).not.toEqual([]);
  expect(all.at(-1)?.refusal).toMatchObject({ code: "rate_limit_exceeded" });
  const others = [stopped(other), stopped(other)];
  expect(others.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
  for (const { input } of [...all, ...others]) input.clear();
  expect(ledger.total).toBe(0);
});

test("refuses to stop a receiver beyond its key's share, without charging the waiting input", () => {
  const ledger = new BufferedBytes(1024 * 1024);
  const memoryAccount = ledger.memoryAccount(new AccountMemory());
  const one = taker();
  const input = new BulkInput(one);
  let refusal: unknown;
  one.onSlice = () => {
    refusal = input.stop(memoryAccount);
  };
  input.add(slices(8));
  expect(refusal).toMatchObject({ code: "rate_limit_exceeded" });
  expect([ledger.total, bufferedBytes.byKind.received - before]).toEqual([0, 7 * sliceBytes]);
  input.clear();
});
