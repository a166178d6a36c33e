// Attempts that fail keep their places; what is no fault of whoever tries gives them back.
import { expect, test } from "bun:test";
import { GatewayError } from "../base/errors.ts";
import { Attempts } from "./attempts.ts";

function attemptsThatTell() {
  const settled: number[] = [];
  const lease = { extend() {}, settle: (tokens: number) => void settled.push(tokens) };
  const admission = { lease, reservedTokens: 1, status: { requests: undefined, tokens: undefined } };
  return { settled, attempts: new Attempts({ admit: () => admission }) };
}

test.each([
  ["invalid_request", 1],
  ["permission_denied", 1],
  ["service_unavailable", 0],
  ["rate_limit_exceeded", 0],
] as const)("counts a failed attempt by its error: %s takes %d slots", async (code, places) => {
  const { attempts, settled } = attemptsThatTell();
  const error = new GatewayError(code, "failed");
  await expect(attempts.run([], "Too many.", () => Promise.reject(error))).rejects.toBe(error);
  expect(settled).toEqual([places]);
});

test("counts no successful attempt, and each explicitly counted one", async () => {
  const { attempts, settled } = attemptsThatTell();
  expect(await attempts.run([], "Too many.", async () => 7)).toBe(7);
  await attempts.count([], "Too many.");
  expect(settled).toEqual([0, 1]);
});
