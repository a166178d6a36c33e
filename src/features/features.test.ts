import { expect, test } from "bun:test";
import { AccountMemory, bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../base/cancellation.ts";
import { loadConfig, type ReloadableConfig } from "../config/config.ts";
import type { GuardedCall } from "../inference/guarding.ts";
import { openFeatures } from "./features.ts";

const call: GuardedCall = {
  ...{ requestId: "r", model: "m", clientGone: new Cancellation(), neverLeaves: false, priority: "normal" },
  memoryAccount: bufferedBytes.memoryAccount(new AccountMemory()),
};
const noSecrets = { name: "no-secrets", kind: "secrets", sides: ["answer"], action: "mask", rules: [] } as const;

async function server(guardrails: ReloadableConfig["guardrails"]) {
  const config = await loadConfig({ env: { HOME: "/home/u" }, cwd: "/nowhere" });
  let current: ReloadableConfig = { ...config, guardrails };
  const features = await openFeatures({ ownCalls: { ask: async () => "" }, current: () => current });
  return {
    begin: () => features.stages.guardrails?.begin(["no-secrets"], call).names,
    async reload(changed: ReloadableConfig["guardrails"]) {
      await features.prepare({ ...config, guardrails: changed });
      current = { ...config, guardrails: changed };
    },
  };
}

test("refuses a model with guardrails while the configuration has none", async () => {
  const { begin } = await server([]);
  expect(begin).toThrow("is not configured any more");
});

test("checks with a guardrail that the configuration has from the start", async () => {
  const { begin } = await server([noSecrets]);
  expect(begin()).toEqual(["no-secrets"]);
});

test("checks with the first guardrail once a reload has added it", async () => {
  const { begin, reload } = await server([]);
  await reload([noSecrets]);
  expect(begin()).toEqual(["no-secrets"]);
});

test("uses the last configuration of two reloads at the same time", async () => {
  const { begin, reload } = await server([]);
  await Promise.all([reload([noSecrets]), reload([])]);
  expect(begin).toThrow("is not configured any more");
});

test("refuses a model after a reload has removed its guardrail", async () => {
  const { begin, reload } = await server([noSecrets]);
  await reload([]);
  expect(begin).toThrow("is not configured any more");
});
