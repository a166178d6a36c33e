import { expect, test } from "bun:test";
import { audit, type UsageTotals } from "./governance.ts";

const booked: UsageTotals = { requests: 2, promptTokens: 360, completionTokens: 320, cost: 0.001, errors: 0 };
const upstream = { requests: 2, streams: 1, promptTokens: 360, completionTokens: 320 };
const mock = { counters: async () => ({ connections: 1, sources: { core: upstream } }) };

test("accepts a ledger that grew by what the upstream counted, whatever it held before", async () => {
  expect((await audit("Run", mock, "core", async () => booked)).faults).toEqual([]);
  const before = { requests: 5, promptTokens: 7, completionTokens: 9, cost: 3, errors: 1 };
  const after = { requests: 7, promptTokens: 367, completionTokens: 329, cost: 3.001, errors: 1 };
  expect((await audit("Run", mock, "core", async () => after, { before })).faults).toEqual([]);
});

test.each([
  ["a token that was lost", { promptTokens: 359 }, "359 prompt tokens, the upstream counted 360"],
  ["a request that was counted twice", { requests: 3 }, "3 requests, the upstream counted 2"],
  ["a price that is wrong", { cost: 0.002 }, "2000 millionths of a USD, the upstream counted 1000"],
  ["an error", { errors: 1 }, "1 errors, the upstream counted 0"],
])("reports %s in the ledger as a fault", async (_, wrong, reported) => {
  const { faults } = await audit("Run", mock, "core", async () => ({ ...booked, ...wrong }));
  expect(faults).toEqual([`Run: the ledger has ${reported}`]);
});
