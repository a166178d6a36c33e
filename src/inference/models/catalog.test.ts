// Tests the catalog: declarations precede discovered models, several engines may serve one id, and engines come and go.
import { beforeEach, describe, expect, test } from "bun:test";
import type { Log, LogFields } from "../../base/log.ts";
import type { Engine, EngineModel } from "../../domain/models/engine.ts";
import { Catalog, type CatalogSource, type DeclaredModel } from "./catalog.ts";

/** An engine whose list of models, or whose absence, the test sets. */
class ListedEngine implements Engine {
  readonly name: string;
  list: EngineModel[] | Error;

  constructor(name: string, list: EngineModel[] | Error = []) {
    this.name = name;
    this.list = list;
  }

  async models(): Promise<EngineModel[]> {
    if (this.list instanceof Error) throw this.list;
    return this.list;
  }

  redact(text: string): string {
    return text;
  }

  send(): Promise<never> {
    return Promise.reject(new Error("not used"));
  }

  async close(): Promise<void> {}
}

let logged: { event: string; fields: LogFields | undefined }[];
let catalog: Catalog;
let nowSeconds: number;

beforeEach(() => {
  logged = [];
  nowSeconds = 1_800_000_000;
  const note = (event: string, fields?: LogFields) => void logged.push({ event, fields });
  const log: Log = { info: note, warn: note, error: note };
  catalog = new Catalog({ log, clock: { nowSeconds: () => nowSeconds, monotonicMs: () => 0 } });
});

function source(engine: Engine, more: Partial<CatalogSource> = {}): CatalogSource {
  return { engine, discover: true, environments: ["live", "dev"], configured: true, ...more };
}

function declared(id: string, more: Partial<DeclaredModel> = {}): DeclaredModel {
  return {
    id,
    ownedBy: undefined,
    capabilities: undefined,
    context: undefined,
    environments: undefined,
    price: undefined,
    deployments: [{ engine: "a", model: "m", weight: 1 }],
    ...more,
  };
}

const ids = () => catalog.list().map((model) => model.id);

describe("discovery", () => {
  test("lists an engine's models under their own ids with the engine's details", async () => {
    const a = new ListedEngine("a", [
      { id: "m", ownedBy: "org", created: 5, context: 100, capabilities: { chat: true } },
    ]);
    catalog.configure([source(a)], []);
    expect(ids()).toEqual([]);
    await catalog.refresh();
    expect(catalog.find("m")).toEqual({
      id: "m",
      ownedBy: "org",
      created: 5,
      context: 100,
      capabilities: { chat: true },
      environments: ["live", "dev"],
      price: undefined,
      deployments: [{ engine: a, model: "m", weight: 1, local: false }],
    });
  });

  test("marks only the deployments of a local source as local, listed or declared", async () => {
    const a = new ListedEngine("a", [{ id: "m" }]);
    const b = new ListedEngine("b", [{ id: "m" }]);
    const places = [...declared("public").deployments, { engine: "b", model: "m", weight: 1 }];
    catalog.configure([source(a, { local: true }), source(b)], [declared("public", { deployments: places })]);
    await catalog.refresh();
    const marked = (id: string) => catalog.get(id)?.deployments.map(({ engine, local }) => [engine.name, local]);
    for (const id of ["public", "m"]) {
      expect(marked(id)).toEqual([
        ["a", true],
        ["b", false],
      ]);
    }
    catalog.configure([source(a), source(b)], [declared("public", { deployments: places })]);
    expect(marked("public")?.flatMap(([, local]) => local)).toEqual([false, false]);
  });

  test("fills in the engine's name and the time first seen, which later refreshes keep", async () => {
    const a = new ListedEngine("a", [{ id: "m" }]);
    catalog.configure([source(a)], []);
    await catalog.refresh();
    expect(catalog.find("m")).toMatchObject({ ownedBy: "a", created: 1_800_000_000 });
    nowSeconds += 3_600;
    a.list = [];
    await catalog.refresh();
    a.list = [{ id: "m" }];
    await catalog.refresh();
    expect(catalog.find("m")?.created).toBe(1_800_000_000);
  });

  test("lists no models of a source without discovery, and serves declared ones", async () => {
    const a = new ListedEngine("a", [{ id: "m", context: 77 }, { id: "other" }]);
    catalog.configure([source(a, { discover: false })], [declared("public")]);
    await catalog.refresh();
    expect(ids()).toEqual(["public"]);
    expect(catalog.find("public")?.context).toBe(77);
  });

  test("removes a model at the next refresh when its engine no longer lists it", async () => {
    const a = new ListedEngine("a", [{ id: "m" }, { id: "n" }]);
    catalog.configure([source(a)], []);
    await catalog.refresh();
    a.list = [{ id: "n" }];
    await catalog.refresh();
    expect(ids()).toEqual(["n"]);
  });
});

describe("one model id on several engines", () => {
  test("merges one id on several engines into a model that promises what all of them support", async () => {
    const a = new ListedEngine("a", [{ id: "m", context: 200, capabilities: { chat: true, embeddings: true } }]);
    const b = new ListedEngine("b", [{ id: "m", context: 100, capabilities: { chat: true, embeddings: false } }]);
    const c = new ListedEngine("c", [{ id: "m", environments: ["live"] }]);
    catalog.configure([source(a), source(b), source(c)], []);
    await catalog.refresh();
    expect(ids()).toEqual(["m"]);
    const model = catalog.find("m");
    expect(model?.deployments.map((deployment) => deployment.engine.name)).toEqual(["a", "b", "c"]);
    expect(model?.context).toBe(100);
    expect(model?.environments).toEqual(["live"]);
    // Any deployment may get a request, so embeddings must not be promised if one engine reports that it cannot serve
    // them.
    expect(model?.capabilities?.embeddings).not.toBe(true);
  });

  describe("one model id on a node and an upstream", () => {
    const served = () => {
      const { deployments = [], context, capabilities } = catalog.find("m") ?? {};
      return { at: deployments.map(({ engine }) => engine.name), context, capabilities };
    };
    const full = { context: 200, capabilities: { chat: true } };

    test.each<[string, object, object | undefined]>([
      ["denies a capability", { capabilities: { chat: false } }, undefined],
      ["has a shorter context", { context: 1 }, undefined],
      [
        "denies a capability that is declared",
        { capabilities: { embeddings: false } },
        { capabilities: { embeddings: true } },
      ],
    ])("leaves out a node that %s, whichever source came first", async (_, claims, more) => {
      const upstream = source(new ListedEngine("up", [{ id: "m", ...full }]));
      const node = source(new ListedEngine("node", [{ id: "m", ...claims }]), { isNode: true });
      const declaration = more ? [declared("m", { deployments: [], ...more })] : [];
      for (const sources of [
        [upstream, node],
        [node, upstream],
      ]) {
        catalog.configure(sources, declaration);
        await catalog.refresh();
        expect(served()).toEqual({ at: ["up"], ...full, ...more });
      }
      const fields = { node: "node", model: "m" };
      expect(logged.filter(({ event }) => event === "node_model_left_out")).toEqual([
        { event: "node_model_left_out", fields },
      ]);
    });

    test.each<[string, object, object | undefined]>([
      ["has the same", full, undefined],
      ["has more", { context: 900, capabilities: { chat: true, embeddings: true } }, undefined],
      ["says nothing", {}, undefined],
      ["denies what nobody promises", { capabilities: { chat: true, embeddings: false } }, undefined],
      ["has the context that is declared", { context: 50 }, { context: 50 }],
    ])("includes a node that %s, and keeps the upstream's promises", async (_, claims, more) => {
      const node = source(new ListedEngine("node", [{ id: "m", ...claims }]), { isNode: true });
      const declaration = more ? [declared("m", { deployments: [], ...more })] : [];
      catalog.configure([node, source(new ListedEngine("up", [{ id: "m", ...full }]))], declaration);
      await catalog.refresh();
      expect(served()).toEqual({ at: ["up", "node"], ...full, ...more });
      expect(logged.map(({ event }) => event)).not.toContain("node_model_left_out");
    });
  });

  test("ends a model with its last deployment, and not while one has no announced end", async () => {
    const [first, second] = [
      new ListedEngine("a", [{ id: "m", shutdownAt: 100 }]),
      new ListedEngine("b", [{ id: "m", shutdownAt: 200 }]),
    ];
    catalog.configure([source(first), source(second)], []);
    await catalog.refresh();
    expect(catalog.get("m")?.shutdownAt).toBe(200);
    second.list = [{ id: "m" }];
    await catalog.refresh();
    expect(catalog.get("m")?.shutdownAt).toBeUndefined();
  });

  test("does not reach an environment through a deployment that does not serve it", async () => {
    const a = new ListedEngine("a", [{ id: "m", environments: ["live", "test", "dev"] }]);
    const b = new ListedEngine("b", [{ id: "m" }]);
    catalog.configure([source(a), source(b)], []);
    await catalog.refresh();
    expect(catalog.find("m")?.environments).not.toContain("test");
  });
});

describe("declarations", () => {
  test("prefers a declaration to discovered models of the same id, deployments included", async () => {
    const a = new ListedEngine("a", [{ id: "m", ownedBy: "theirs", context: 100, capabilities: { chat: true } }]);
    const b = new ListedEngine("b", [{ id: "m" }]);
    const price = { input: 1, output: 2 };
    catalog.configure(
      [source(a), source(b)],
      [declared("m", { ownedBy: "us", context: 50, capabilities: { chat: false }, environments: ["test"], price })],
    );
    await catalog.refresh();
    expect(catalog.find("m")).toMatchObject({
      ownedBy: "us",
      context: 50,
      capabilities: { chat: false },
      environments: ["test"],
      price,
      deployments: [{ engine: a, model: "m", weight: 1 }],
    });
  });

  test("applies a declaration without deployments wherever the model is found, and only narrows environments", async () => {
    const one = new ListedEngine("a", [{ id: "m", context: 100 }]);
    const two = new ListedEngine("b", [{ id: "m", environments: ["live", "test", "dev"] }]);
    const price = { input: 1, output: 2 };
    const wherever = declared("m", { deployments: [], price, environments: ["live", "test"], fallbacks: ["n"] });
    catalog.configure([source(one), source(two)], [wherever, declared("nowhere", { deployments: [] })]);
    await catalog.refresh();
    expect(catalog.find("m")).toMatchObject({ price, context: 100, environments: ["live"], fallbacks: ["n"] });
    expect(catalog.find("m")?.deployments.map(({ engine }) => engine.name)).toEqual(["a", "b"]);
    expect(catalog.find("nowhere")).toBeUndefined();
  });

  test("gives a model the policies of its declaration, and none without one", async () => {
    const a = new ListedEngine("a", [{ id: "found" }, { id: "plain" }]);
    const policies = { continuation: true };
    const placed = declared("placed", { deployments: [{ engine: "a", model: "plain", weight: 1 }], policies });
    const found = declared("found", { deployments: [], policies });
    catalog.configure([source(a)], [placed, found, declared("bare", {})]);
    await catalog.refresh();
    expect(["placed", "found"].map((id) => catalog.find(id)?.policies)).toEqual([policies, policies]);
    for (const id of ["plain", "bare"]) expect(Object.keys(catalog.find(id) ?? {})).not.toContain("policies");
    catalog.configure([source(a)], [declared("found", { deployments: [] })]);
    expect(catalog.find("found")?.policies).toBeUndefined();
  });

  test("resolves aliases once all engines are listed, never to another model's id, and warns once", async () => {
    const a = new ListedEngine("a", [{ id: "m" }, { id: "gpt-5" }]);
    const aliased = declared("big", { aliases: ["gpt-5", "gpt-*", "claude-opus-5"] });
    const nowhere = declared("nowhere", { deployments: [], aliases: ["gpt-4*"] });
    catalog.configure([source(a)], [aliased, nowhere]);
    expect(catalog.find("big")?.aliases).toEqual(["gpt-5", "gpt-*", "claude-opus-5"]);
    for (const name of ["gpt-5", "claude-opus-5"]) expect(catalog.find(name)).toBeUndefined();
    for (let times = 0; times < 2; times++) await catalog.refresh();
    const names = ["gpt-5", "gpt-5-mini", "claude-opus-5", "big", "gpt-4o", "other"];
    expect(names.map((name) => catalog.find(name)?.id)).toEqual([
      ...["gpt-5", "big", "big", "big"],
      // A declared model without deployments is not replaced by another model whose alias matches too.
      ...[undefined, undefined],
    ]);
    expect(names.map((name) => catalog.get(name)?.id)).toEqual([
      "gpt-5",
      undefined,
      undefined,
      "big",
      undefined,
      undefined,
    ]);
    expect(logged.filter(({ event }) => event === "alias_in_vain")).toEqual([
      { event: "alias_in_vain", fields: { alias: "gpt-5", model: "big", served_by: "gpt-5" } },
    ]);
  });

  test("fills in what a declaration omits under the engine's own model id", async () => {
    const a = new ListedEngine("a", [{ id: "long-internal-name", ownedBy: "org", created: 9, context: 100 }]);
    const deployments = [{ engine: "a", model: "long-internal-name", weight: 3 }];
    catalog.configure([source(a, { discover: false })], [declared("short", { deployments })]);
    await catalog.refresh();
    expect(catalog.find("short")).toMatchObject({ ownedBy: "org", created: 9, context: 100 });
    expect(catalog.find("short")?.deployments[0]?.weight).toBe(3);
    expect(catalog.find("short")?.environments).toEqual(["live", "dev"]);
  });

  test("lists declared models before any engine answers, without deployments if their engine is missing", () => {
    catalog.configure([], [declared("m")]);
    expect(catalog.find("m")?.deployments).toEqual([]);
  });
});

describe("unreachable engines", () => {
  test("keeps the last model list of an unreachable engine", async () => {
    const a = new ListedEngine("a", [{ id: "m" }]);
    catalog.configure([source(a)], []);
    await catalog.refresh();
    a.list = new Error("ECONNREFUSED");
    await catalog.refresh();
    expect(ids()).toEqual(["m"]);
  });

  test("warns once for each outage of an engine and reports its return once", async () => {
    const a = new ListedEngine("a", new Error("ECONNREFUSED"));
    catalog.configure([source(a)], []);
    const events = async () => {
      logged.length = 0;
      await catalog.refresh();
      await catalog.refresh();
      return logged.map((entry) => entry.event);
    };
    expect(await events()).toEqual(["upstream_unreachable"]);
    a.list = [{ id: "m" }];
    expect(await events()).toEqual(["upstream_reached"]);
    a.list = new Error("ECONNREFUSED");
    expect(await events()).toEqual(["upstream_unreachable"]);
    a.list = [{ id: "m" }];
    expect(await events()).toEqual(["upstream_reached"]);
  });

  test("does not warn about unreachable engines that the configuration does not name", async () => {
    catalog.configure([source(new ListedEngine("found", new Error("gone")), { configured: false })], []);
    await catalog.refresh();
    expect(logged).toEqual([]);
  });

  test("reports why an engine is unreachable and how many models it listed", async () => {
    const a = new ListedEngine("a", [{ id: "m" }]);
    const found = new ListedEngine("found", new Error("gone"));
    catalog.configure([source(a), source(found, { configured: false })], []);
    expect(catalog.status(a)).toEqual({ models: undefined, error: undefined });
    await catalog.refresh();
    expect(catalog.status(a)).toEqual({ models: 1, error: undefined });
    expect(catalog.status(found)).toEqual({ models: undefined, error: "gone" });
    a.list = new DOMException("slow", "TimeoutError");
    await catalog.refresh();
    expect(catalog.status(a)).toEqual({ models: 1, error: "It did not list its models within 5 s." });
    a.list = [];
    await catalog.refresh();
    expect(catalog.status(a)).toEqual({ models: 0, error: undefined });
    catalog.configure([], []);
    expect(catalog.status(found)).toEqual({ models: undefined, error: undefined });
  });

  test("refreshes the other engines while one is unreachable", async () => {
    const a = new ListedEngine("a", new Error("gone"));
    const b = new ListedEngine("b", [{ id: "n" }]);
    catalog.configure([source(a), source(b)], []);
    await catalog.refresh();
    expect(ids()).toEqual(["n"]);
  });
});

describe("reconfiguration", () => {
  test("keeps the models of an engine that stays and drops those of a removed one", async () => {
    const a = new ListedEngine("a", [{ id: "m" }]);
    const b = new ListedEngine("b", [{ id: "n" }]);
    catalog.configure([source(a), source(b)], []);
    await catalog.refresh();
    catalog.configure([source(a)], []);
    expect(ids()).toEqual(["m"]);
    catalog.configure([source(a), source(b)], []);
    expect(ids()).toEqual(["m"]);
  });

  test("accepts a model list that arrives after a reconfiguration if its engine stayed", async () => {
    let answer = (_: EngineModel[]) => {};
    const slow = new ListedEngine("slow");
    slow.models = () => new Promise((resolve) => (answer = resolve));
    catalog.configure([source(slow)], []);
    const refreshed = catalog.refresh();
    catalog.configure([source(slow), source(new ListedEngine("added"))], []);
    answer([{ id: "m" }]);
    await refreshed;
    expect(ids()).toEqual(["m"]);
  });

  test("ignores a model list that arrives after its engine was removed", async () => {
    let answer = (_: EngineModel[]) => {};
    const slow = new ListedEngine("slow");
    slow.models = () => new Promise((resolve) => (answer = resolve));
    catalog.configure([source(slow)], []);
    const refreshed = catalog.refresh();
    catalog.configure([], []);
    answer([{ id: "ghost" }]);
    await refreshed;
    expect(ids()).toEqual([]);
  });
});
