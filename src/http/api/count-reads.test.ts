import { expect, test } from "bun:test";
import { exchangeFor, incoming } from "../../../tests/support/exchange.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import { systemClock } from "../../base/clock.ts";
import { type CountRouteDeps, countFor } from "./inference-answer.ts";

test("runs two token counts of stored conversations at a time for an account", async () => {
  let [running, most] = [0, 0];
  const chain = async (): Promise<never> => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    throw new Error("The store is away.");
  };
  const deps = {
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8, messages: 8 }),
    clock: systemClock,
    responses: { chain, items: async () => new Map() },
  } as Partial<CountRouteDeps> as CountRouteDeps;
  const body = { model: "m", input: "Hello", previous_response_id: "resp_1" };
  const counts = Array.from({ length: 20 }, async () => {
    const exchange = exchangeFor(incoming({ method: "POST", target: "/v1/responses/input_tokens", body }));
    return await countFor("response", exchange, principalFor({}), deps);
  });
  const outcomes = await Promise.allSettled(counts);
  expect(outcomes.map(({ status }) => status)).toEqual(counts.map(() => "rejected"));
  expect(most).toBe(2);
});
