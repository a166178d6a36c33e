// Tests that the deletion of a pulled model is recorded as it happened, and only if it happened.
import { expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { GatewayError } from "../../base/errors.ts";
import type { LogFields } from "../../base/log.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { ModelMemory } from "../../domain/models/memory-need.ts";
import type { PulledModelStore, RemovedModel } from "../../domain/models/pulled-model.ts";
import { PulledModels } from "./manage-pulled-models.ts";

const operator = principalFor({ scopes: new Set(["admin:manage"]) });
const origin = { nowSeconds: 1, clientAddress: null, requestId: null };
const model: RemovedModel = {
  ...{ id: "m", bytes: 7, state: "ready", source: "hf:acme/m", pulledAt: 1, context: null, capabilities: null },
  ...{ facts: null, memory: null, left: [] },
};

const neverPulls = {
  pulls: () => [],
  offer: () => Promise.reject(new Error("unused")),
  pull: () => Promise.reject(new Error("unused")),
};

interface Setup {
  append?: () => Promise<void>;
  inUse?: number;
  memory?: ModelMemory;
  isAuditRequired?: boolean;
}

function setup(
  remove: PulledModelStore["remove"],
  { append, inUse = 0, memory = { total: 0, free: 0, evictable: 0, pinned: 0 }, isAuditRequired = false }: Setup = {},
) {
  const events: AuditEvent[] = [];
  const received: [event: string, fields: LogFields | undefined][] = [];
  let refreshed = 0;
  const models = new PulledModels({
    store: { ...neverPulls, list: async () => [{ ...model, memory: need }], remove },
    isAuditRequired,
    audit: { append: append ?? (async (all) => void events.push(...all)) },
    catalog: {
      refreshSource: async () => {
        refreshed++;
      },
    },
    elsewhere: [],
    engine: {
      ...({} as Engine),
      use: () => ({ state: inUse > 0 ? "loaded" : "unloaded", inUse }),
      memory: () => memory,
      held: () => [],
    },
    log: { info() {}, warn() {}, error: (event, fields) => void received.push([event, fields]) },
  });
  const error = (): Promise<unknown> =>
    models.remove(operator, "m", false, origin).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  return { models, events, received, error, refreshed: () => refreshed };
}

test("deletes nothing if the audit is required and cannot be written", async () => {
  let removals = 0;
  const remove = async () => {
    removals++;
    return { ...model, bytes: 5 };
  };
  const append = () => Promise.reject(new GatewayError("service_unavailable", "The database cannot be used."));
  expect(await setup(remove, { append, isAuditRequired: true }).error()).toMatchObject({ code: "service_unavailable" });
  expect(removals).toBe(0);
  const { models, events } = setup(remove, { isAuditRequired: true });
  await models.remove(operator, "m", false, origin);
  expect([removals, events.map(({ action }) => action)]).toEqual([1, ["pulled_model.deleted"]]);
});

test("audits a deleted model with the bytes freed", async () => {
  const { models, events } = setup(async () => ({ ...model, bytes: 5 }));
  expect(await models.remove(operator, "m", false, origin)).toMatchObject({ id: "m", bytes: 5 });
  expect(events).toMatchObject([
    { action: "pulled_model.deleted", targetId: "m", detail: { bytes: 5, source: "hf:acme/m" } },
  ]);
  expect(events[0]?.detail).not.toHaveProperty("files_left");
});

const rows: [why: string, remove: PulledModelStore["remove"], error: object][] = [
  [
    "is being pulled",
    () => Promise.reject(new GatewayError("service_unavailable", "The model m is being pulled.")),
    { code: "service_unavailable" },
  ],
  ["is not there", async () => undefined, { code: "not_found" }],
  ["cannot be deleted", () => Promise.reject(new Error("EROFS")), { message: "EROFS" }],
];

test.each(rows)("does not audit a model that %s", async (_, remove, refusal) => {
  const { events, error } = setup(remove);
  expect(await error()).toMatchObject(refusal);
  expect(events).toEqual([]);
});

test("audits a deletion that left files, stops offering the model, and tells the operator", async () => {
  const { events, error, refreshed } = setup(async () => ({ ...model, bytes: 3, left: ["m.gguf (EACCES)"] }));
  expect(await error()).toMatchObject({
    code: "service_unavailable",
    message: expect.stringContaining("1 of its files could not be deleted"),
    detail: "m.gguf (EACCES)",
  });
  expect(events).toMatchObject([{ detail: { bytes: 3, files_left: 1 } }]);
  expect(refreshed()).toBe(1);
});

test("logs the deletion and its actor if the audit log fails", async () => {
  const { models, received } = setup(async () => model, { append: () => Promise.reject(new Error("away")) });
  await models.remove(operator, "m", false, origin);
  expect(received).toEqual([["pulled_model_not_audited", { model: "m", by: "key_1", detail: "Error: away" }]]);
});

test("deletes a model with running requests only by force", async () => {
  const { models, error, events } = setup(async () => model, { inUse: 2 });
  expect(await error()).toMatchObject({ code: "service_unavailable", message: expect.stringContaining("2 requests") });
  expect(events).toEqual([]);
  expect(await models.remove(operator, "m", true, origin)).toMatchObject({ id: "m" });
});

const need = { bytes: 100, minBytes: 60, weights: 50, cache: 40, compute: 10, context: 8192, parallel: 4 };

test.each([
  ["now", { total: 200, free: 100, evictable: 0, pinned: 0 }],
  ["evicting", { total: 200, free: 10, evictable: 90, pinned: 0 }],
  ["waiting", { total: 200, free: 10, evictable: 50, pinned: 100 }],
  ["reduced", { total: 200, free: 10, evictable: 50, pinned: 140 }],
  ["never", { total: 200, free: 10, evictable: 0, pinned: 141 }],
] as const)("reports the fit of a pulled model as %s", async (fit, memory) => {
  const { models } = setup(async () => undefined, { memory });
  const [listed] = await models.list();
  expect(listed?.fit).toBe(fit);
});
