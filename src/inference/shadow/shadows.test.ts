// Tests the share of a shadow: its percentage of requests, none that it may not get, and never more than there are idle
// slots for.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import { AccountMemory, bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { Model } from "../../domain/models/model.ts";
import type { Principal } from "../../domain/principal.ts";
import type { OwnCall } from "../own-calls.ts";
import { isSampled, Shadows } from "./shadows.ts";

const policy = { model: "second", percent: 100 };

function started(changes: Partial<Model> = {}, idlePlaces = 1_000) {
  const second: Model = {
    ...{ id: "second", created: 1, ownedBy: "o", capabilities: undefined, context: undefined, price: undefined },
    ...{ environments: ["live"], deployments: [] },
    ...changes,
  };
  const asked: OwnCall[] = [];
  const ends: (() => void)[] = [];
  const shadows = new Shadows({
    ownCalls: {
      ask: (call) => {
        asked.push(call);
        return new Promise((resolve) => ends.push(() => resolve("{}")));
      },
    },
    catalog: { get: () => second },
    capacity: { idleSlots: () => idlePlaces },
    guardrails: {
      begin: (names) => ({ names, ofRequest: () => Promise.resolve(undefined), answer: undefined, findings: [] }),
    },
    memoryAccount: bufferedBytes.memoryAccount(new AccountMemory()),
  });
  return { shadows, asked, ends };
}

function callOf(body: Record<string, unknown> = {}, principal: Partial<Principal> = {}, more: object = {}) {
  const request = decodedRequest({ messages: [{ role: "user", content: "Hello" }], ...body });
  return {
    request,
    principal: principalFor(principal),
    requestId: `req_${Bun.randomUUIDv7()}`,
    onWanted: undefined,
    ...more,
  };
}

async function resultsOf({ shadows }: { shadows: Shadows }): Promise<Record<string, number>> {
  await Bun.sleep(2);
  return Object.fromEntries(Array.from(shadows.counts, ({ result, count }) => [result, count]));
}

test("samples the configured percentage of requests, within 1", () => {
  const ids = Array.from({ length: 100_000 }, () => `req_${Bun.randomUUIDv7()}`);
  for (const percent of [1, 20, 75]) {
    const chosen = ids.filter((id) => isSampled(id, percent)).length / 1_000;
    expect(Math.abs(chosen - percent)).toBeLessThan(1);
  }
  expect(ids.every((id) => isSampled(id, 100))).toBeTrue();
});

test("sends a shadow request only after the event-loop turn of the client's request", async () => {
  const one = started();
  one.shadows.sent(policy, "first", callOf());
  expect(one.asked).toHaveLength(0);
  await resultsOf(one);
  expect(one.asked).toHaveLength(1);
});

test("runs at most 64 shadow requests at once, and counts the dropped ones", async () => {
  const one = started();
  for (let at = 0; at < 70; at++) one.shadows.sent(policy, "first", callOf());
  expect(await resultsOf(one)).toEqual({ dropped: 6 });
  expect(one.asked).toHaveLength(64);
  for (const end of one.ends) end();
  expect(await resultsOf(one)).toEqual({ dropped: 6, answered: 64 });
  one.shadows.sent(policy, "first", callOf());
  await resultsOf(one);
  expect(one.asked).toHaveLength(65);
});

test("sends no shadow request without an idle slot", async () => {
  const one = started({}, 0);
  one.shadows.sent(policy, "first", callOf());
  expect(await resultsOf(one)).toEqual({ dropped: 1 });
  expect(one.asked).toHaveLength(0);
});

test("shadows requests that never leave only at models whose deployments are all local", async () => {
  const engine = { name: "e" } as Model["deployments"][number]["engine"];
  const modelAccess = { models: [], neverLeaves: true };
  const [near, far] = [
    { engine, model: "m", weight: 1, local: true },
    { engine, model: "m", weight: 1 },
  ];
  for (const deployments of [[far], [near, far], []]) {
    const one = started({ deployments });
    one.shadows.sent(policy, "first", callOf({}, { modelAccess }));
    expect(await resultsOf(one)).toEqual({ skipped: 1 });
    expect(one.asked).toHaveLength(0);
  }
  const one = started({ deployments: [near] });
  one.shadows.sent(policy, "first", callOf({}, { modelAccess }));
  await resultsOf(one);
  expect(one.asked.map(({ neverLeaves }) => neverLeaves)).toEqual([true]);
});

test("shadows neither batch lines nor requests that the second model cannot serve", async () => {
  const one = started();
  one.shadows.sent(policy, "first", callOf({}, {}, { onWanted: () => {} }));
  expect(await resultsOf(one)).toEqual({});
  const other = started({ capabilities: { chat: false } });
  other.shadows.sent(policy, "first", callOf());
  expect(await resultsOf(other)).toEqual({ skipped: 1 });
  expect([...one.asked, ...other.asked]).toHaveLength(0);
});

test("sends the client's body with another model, without stream and without storing", async () => {
  const one = started();
  const more = { stream: true, stream_options: { include_usage: true }, store: true, max_tokens: 9, temperature: 0 };
  one.shadows.sent(policy, "first", callOf(more));
  await resultsOf(one);
  expect(JSON.parse(one.asked[0]?.body ?? "")).toEqual({
    ...{ model: "second", messages: [{ role: "user", content: "Hello" }], max_tokens: 9, temperature: 0, store: false },
  });
});
