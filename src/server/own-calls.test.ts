// In whose name the gateway asks: found once for all that ask at a time, and still known where the database is away.
import { expect, test } from "bun:test";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { principalFor } from "../../tests/support/principal.ts";
import type { Operator } from "../inference/gateway-calls.ts";
import { rememberedOperator } from "./own-calls.ts";

function operatorOf(): Operator {
  const { account, keys } = principalFor();
  return { account, key: keys[0] };
}

test("looks up the operator once a minute, however many calls there are", async () => {
  const clock = manualClock(1_800_000_000);
  const found = operatorOf();
  let looked = 0;
  const operator = rememberedOperator(async () => {
    looked++;
    await Bun.sleep(1);
    return found;
  }, clock);
  const all = await Promise.all(Array.from({ length: 1_000 }, operator));
  expect(all.every((one) => one === found)).toBeTrue();
  clock.advance(59_000);
  await operator();
  expect(looked).toBe(1);
  clock.advance(2_000);
  await operator();
  expect(looked).toBe(2);
});

test("keeps the last operator while the database is away, and has none without one", async () => {
  const clock = manualClock(1_800_000_000);
  const found = operatorOf();
  const finds: (() => Promise<Operator | undefined>)[] = [
    () => Promise.reject(new Error("away")),
    () => Promise.resolve(undefined),
    () => Promise.resolve(found),
    () => Promise.reject(new Error("away")),
  ];
  const operator = rememberedOperator(() => (finds.shift() ?? (() => Promise.reject(new Error("away"))))(), clock);
  await expect(operator()).rejects.toThrow("away");
  expect(await operator()).toBeUndefined();
  expect(await operator()).toBe(found);
  clock.advance(61_000);
  expect(await operator()).toBe(found);
});

test("does not wait for a hanging database once an operator was found", async () => {
  const clock = manualClock(1_800_000_000);
  const found = operatorOf();
  let isHanging = false;
  const operator = rememberedOperator(() => (isHanging ? new Promise(() => {}) : Promise.resolve(found)), clock);
  await operator();
  isHanging = true;
  clock.advance(61_000);
  expect(await operator()).toBe(found);
  expect(await operator()).toBe(found);
});
