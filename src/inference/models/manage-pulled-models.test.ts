// The deletion of a pulled model is on record as it happened, and only where it happened.
import { expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { GatewayError } from "../../base/errors.ts";
import type { LogFields } from "../../base/log.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { PulledModelStore, RemovedModel } from "../../domain/models/pulled-model.ts";
import { PulledModels } from "./manage-pulled-models.ts";

const operator = principalFor({ scopes: new Set(["admin:manage"]) });
const origin = { nowSeconds: 1, clientAddress: null, requestId: null };
const model: RemovedModel = {
  ...{ id: "m", bytes: 7, state: "ready", source: "hf:acme/m", pulledAt: 1, context: null, capabilities: null },
  left: [],
};

function setup(remove: PulledModelStore["remove"], append?: () => Promise<void>) {
  const events: AuditEvent[] = [];
  const told: [event: string, fields: LogFields | undefined][] = [];
  let refreshed = 0;
  const models = new PulledModels({
    store: { list: async () => [model], remove },
    audit: { append: append ?? (async (all) => void events.push(...all)) },
    catalog: {
      refreshSource: async () => {
        refreshed++;
      },
    },
    engine: {} as Engine,
    log: { info() {}, warn() {}, error: (event, fields) => void told.push([event, fields]) },
  });
  const error = (): Promise<unknown> =>
    models.remove(operator, "m", origin).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  return { models, events, told, error, refreshed: () => refreshed };
}

test("a model that is deleted is on record with what was freed", async () => {
  const { models, events } = setup(async () => ({ ...model, bytes: 5 }));
  expect(await models.remove(operator, "m", origin)).toMatchObject({ id: "m", bytes: 5 });
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

test.each(rows)("one that %s is on record as nothing", async (_, remove, refusal) => {
  const { events, error } = setup(remove);
  expect(await error()).toMatchObject(refusal);
  expect(events).toEqual([]);
});

test("one of which files are left is on record as that, offered no more, and its operator is told", async () => {
  const { events, error, refreshed } = setup(async () => ({ ...model, bytes: 3, left: ["m.gguf (EACCES)"] }));
  expect(await error()).toMatchObject({
    code: "service_unavailable",
    message: expect.stringContaining("1 of its files could not be deleted"),
    detail: "m.gguf (EACCES)",
  });
  expect(events).toMatchObject([{ detail: { bytes: 3, files_left: 1 } }]);
  expect(refreshed()).toBe(1);
});

test("where the audit log takes no row, the server's log has who deleted what", async () => {
  const { models, told } = setup(
    async () => model,
    () => Promise.reject(new Error("away")),
  );
  await models.remove(operator, "m", origin);
  expect(told).toEqual([["pulled_model_not_audited", { model: "m", by: "key_1", detail: "Error: away" }]]);
});
