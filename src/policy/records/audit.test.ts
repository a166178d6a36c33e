// Details of audit events: whole as a rule, and bounded for changes of very long lists.
import { expect, test } from "bun:test";
import { auditEvent, changedMembers } from "./audit.ts";

const origin = { nowSeconds: 1_800_000_000, clientAddress: null, requestId: null };
const detailOf = (detail: Record<string, unknown>) =>
  auditEvent("key.updated", { type: "operator" }, origin, { accountId: null, targetId: "key_1", detail }).detail;
const list = (entries: number, length: number) =>
  Array.from({ length: entries }, (_, i) => `${i}-`.padEnd(length, "m"));

test("keeps the detail of a change of a hundred ordinary models whole", () => {
  const detail = changedMembers({ models: list(100, 40) }, { models: list(99, 40) });
  expect(detailOf(detail)).toEqual(detail);
});

test("shortens lists until the detail has at most 32 KiB, and says how many entries are left out", () => {
  const quotas = list(16, 8).map((per) => ({ per, models: list(32, 256) }));
  const detail = detailOf({
    name: "a",
    ...changedMembers({ models: null, quotas: [] }, { models: list(100, 256), quotas }),
  });
  expect(JSON.stringify(detail).length).toBeLessThanOrEqual(32 * 1024);
  expect(detail).toMatchObject({ name: "a", models: { before: null }, quotas: { before: [] } });
  const { after } = detail["models"] as { after: string[] };
  expect(after[0]).toBe(list(1, 256)[0]);
  expect(after.at(-1)).toBe(`and ${101 - after.length} more`);
});
