// Tests where models run: state, load and speed of each deployment.
import { beforeEach, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import type { Engine, EngineModel } from "../../domain/models/engine.ts";
import type { Model } from "../../domain/models/model.ts";
import type { AttemptHealth } from "../../domain/usage/attempt-health.ts";
import type { Speed } from "../../domain/usage/speed.ts";
import { Capacity } from "../routing/capacity.ts";
import type { SlotRequest } from "../routing/gate.ts";
import { Router } from "../routing/route.ts";
import { Catalog, type CatalogSource } from "./catalog.ts";
import { ModelStatus } from "./model-status.ts";

let clock: ManualClock;
let catalog: Catalog;
let router: Router;
let capacity: Capacity;
let reads: number;
let speeds: Speed[] | Error;

const log = { info: () => {}, warn: () => {}, error: () => {} };

beforeEach(() => {
  clock = manualClock();
  catalog = new Catalog({ log, clock });
  router = new Router(clock);
  capacity = new Capacity({ clock, router, bounds: () => ({ maxWaiting: 10, maxWaitMs: 1_000 }) });
  reads = 0;
  speeds = [];
});

class ListedEngine implements Engine {
  readonly name: string;
  readonly maxConcurrency: number | undefined;
  list: EngineModel[] | Error = [{ id: "m" }];

  constructor(name: string, maxConcurrency?: number) {
    this.name = name;
    this.maxConcurrency = maxConcurrency;
  }

  async models(): Promise<EngineModel[]> {
    if (this.list instanceof Error) throw this.list;
    return this.list;
  }

  redact = (text: string) => text;
  send = () => Promise.reject(new Error("not used"));
}

const source = (engine: Engine, configured = true): CatalogSource => {
  return { engine, discover: true, environments: ["dev"], configured };
};

const health: AttemptHealth = { attempts: 0, failed: 0, isFailing: false, since: null, last: null };

function makeStatus(): ModelStatus {
  const recent = async () => {
    reads++;
    if (speeds instanceof Error) throw speeds;
    return speeds;
  };
  return new ModelStatus({ catalog, router, capacity, healths: { ofModel: () => health }, speeds: { recent }, clock });
}

const all = (model: Model): Model => model;
const statesOf = async (status: ModelStatus) =>
  (await status.list(all)).flatMap(({ deployments }) => deployments.map(({ upstream, state }) => [upstream, state]));

const wanted: SlotRequest = {
  ...{ priority: "normal", partyId: "key_1" },
  accountId: "a",
  operation: "chat",
  stream: false,
  width: 1,
  model: "m",
};
const modelM = () => catalog.find("m") as Model;

test("reports a deployment as draining before unreachable, and unreachable before cooling down", async () => {
  const [one, two] = [new ListedEngine("one"), new ListedEngine("two")];
  catalog.configure([source(one), source(two)], []);
  await catalog.refresh();
  const status = makeStatus();
  const ok = ["two", "ok"];
  expect(await statesOf(status)).toEqual([["one", "ok"], ok]);
  router.unreachable(one);
  expect(await statesOf(status)).toEqual([["one", "cooling_down"], ok]);
  one.list = new Error("connection refused");
  await catalog.refresh();
  expect(await statesOf(status)).toEqual([["one", "unreachable"], ok]);
  router.drained = new Set(["one"]);
  expect(await statesOf(status)).toEqual([["one", "draining"], ok]);
  router.drained = new Set();
  one.list = [{ id: "m" }];
  await catalog.refresh();
  clock.advance(10_000);
  expect(await statesOf(status)).toEqual([["one", "ok"], ok]);
});

test("reports the source of an engine's status", async () => {
  const sources = [source(new ListedEngine("built-in"), false), source(new ListedEngine("ollama"), false)];
  catalog.configure([...sources, source(new ListedEngine("vllm"))], []);
  for (const [i, { engine }] of sources.entries()) (engine as ListedEngine).list = [{ id: `model-${i}` }];
  await catalog.refresh();
  const kinds = (await makeStatus().list(all)).flatMap(({ deployments }) =>
    deployments.map(({ upstream, kind }) => `${upstream} ${kind}`),
  );
  expect(kinds.sort()).toEqual(["built-in built-in", "ollama found", "vllm configured"]);
});

test("reports running and waiting requests and concurrency as of now", async () => {
  catalog.configure([source(new ListedEngine("one", 1))], []);
  await catalog.refresh();
  const status = makeStatus();
  const load = async () => {
    const [deployment] = (await status.list(all))[0]?.deployments ?? [];
    return [deployment?.running, deployment?.waiting, deployment?.concurrency];
  };
  expect(await load()).toEqual([0, 0, 1]);
  const place = capacity.take(modelM().deployments, wanted);
  const cancellation = { cancelled: false, throwIfCancelled() {}, onCancel() {}, off() {} };
  const next = capacity.wait(modelM().deployments, wanted, capacity.arrive(), cancellation as never);
  expect(await load()).toEqual([1, 1, 1]);
  expect(capacity.waiting).toBe(1);
  place?.release();
  (await next)?.release();
  expect(await load()).toEqual([0, 0, 1]);
});

test("reports the concurrency of each model separately, with embeddings apart", async () => {
  const engine = Object.assign(new ListedEngine("one"), {
    concurrency: (_model: string, operation: string) => (operation === "embedding" ? 2 : 4),
  });
  engine.list = [{ id: "m" }, { id: "other" }];
  catalog.configure([source(engine)], []);
  await catalog.refresh();
  const [place] = [capacity.take(modelM().deployments, { ...wanted, width: 3 })];
  capacity.take(modelM().deployments, { ...wanted, operation: "embedding" });
  const found = (await makeStatus().list(all)).map(({ model, deployments }) => {
    return [model.id, deployments[0]?.running, deployments[0]?.concurrency];
  });
  expect(place).toBeDefined();
  expect(found).toEqual([
    ["m", 4, 6],
    ["other", 0, 4],
  ]);
});

test("reads speeds once in some seconds however often they are shown, and keeps the last ones on failure", async () => {
  catalog.configure([source(new ListedEngine("one"))], []);
  await catalog.refresh();
  const status = makeStatus();
  const speed = async () => (await status.list(all))[0]?.deployments[0]?.speed?.firstTokenMs;
  expect(await speed()).toBeUndefined();
  speeds = [
    { model: "m", upstream: "one", firstTokenMs: 12, tokensPerSecond: 3 },
    { model: "m", upstream: "two", firstTokenMs: 99, tokensPerSecond: 3 },
  ];
  await Promise.all(Array.from({ length: 20 }, speed));
  expect([await speed(), reads]).toEqual([undefined, 1]);
  clock.advance(5_000);
  expect([await speed(), await speed(), reads]).toEqual([12, 12, 2]);
  speeds = new Error("locked");
  clock.advance(5_000);
  expect([await speed(), reads]).toEqual([12, 3]);
});

test("lists only the models that the caller may see", async () => {
  const engine = new ListedEngine("one");
  engine.list = [{ id: "m" }, { id: "hidden" }];
  catalog.configure([source(engine)], []);
  await catalog.refresh();
  expect(
    (await makeStatus().list((model) => (model.id === "m" ? model : undefined))).map(({ model }) => model.id),
  ).toEqual(["m"]);
});

test("matches thousands of speeds to thousands of models without a nested loop", async () => {
  const engine = new ListedEngine("up");
  const ids = Array.from({ length: 1_000 }, (_, i) => `m${i}`);
  engine.list = ids.map((id) => ({ id }));
  catalog.configure([source(engine)], []);
  await catalog.refresh();
  let looks = 0;
  speeds = ids.map((id, i) => ({
    get model() {
      looks++;
      return id;
    },
    upstream: "up",
    firstTokenMs: i,
    tokensPerSecond: null,
  }));
  const found = await makeStatus().list((model) => model);
  expect(found.map(({ deployments: [one] }) => one?.speed?.firstTokenMs)).toEqual(ids.map((_, i) => i));
  expect(looks).toBeLessThan(10_000);
});
