// What servers say of their tools, held to what was approved, in a real database.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/domain/tools/client-session.ts";
import type { ToolApproval } from "../../src/domain/tools/mcp-server.ts";
import type { ToolDefinition } from "../../src/domain/tools/tool-definition.ts";
import { digestOf } from "../../src/mcp/registry/definition-record.ts";
import { Definitions } from "../../src/mcp/registry/definitions.ts";
import { SqlDefinitionStore } from "../../src/storage/tables/tools/definition-store.ts";
import { silentLog } from "../support/data-directory.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { manualClock } from "../support/manual-clock.ts";
import { principalFor } from "../support/principal.ts";

const server = {
  name: "files",
  approval: "first",
  place: { kind: "http", url: "https://files.example.com/mcp" },
  credentials: { kind: "none" },
} as const;
/** It is asked as each person. */
const personal = {
  ...server,
  credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
} as const;
const atNode = { ...server, place: { kind: "node", nodeId: "gpu-1", server: "own" } } as const;
const tool = (name: string, description = "Reads."): JsonObject => ({ name, description, inputSchema: {} });
const namesOf = (offered: readonly JsonObject[]) => offered.map(({ name }) => name);

const namesOfKnown = (known: readonly ToolDefinition[]) => known.map(({ name }) => name);

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let clock: ReturnType<typeof manualClock>;
  let definitions: Definitions;
  let reads = 0;
  /** How often something was put on record. */
  let writes = 0;
  /** The machine that has the name gpu-1. */
  let machine = "node_1";
  const nodes = { find: () => ({ id: machine, name: "gpu-1", isThere: true, isLocal: false, offers: [] }) };

  beforeEach(async () => {
    opened = await databases.open();
    clock = manualClock();
    reads = 0;
    writes = 0;
    const store = new SqlDefinitionStore(opened.db);
    definitions = new Definitions({
      store: {
        listDefinitions(of) {
          reads++;
          return store.listDefinitions(of);
        },
        findDefinition: (...one) => store.findDefinition(...one),
        pageDefinitions: (...page) => store.pageDefinitions(...page),
        putSeen(seen) {
          writes++;
          return store.putSeen(seen);
        },
        decide: (...decision) => store.decide(...decision),
        countWaiting: () => store.countWaiting(),
      },
      ...{ nodes, clock, log: silentLog, announce() {} },
    });
  });
  afterEach(() => opened.close());

  const known = (name: string, more: { search?: string; isWaiting?: boolean } = {}) =>
    definitions.page(name, { after: undefined, limit: 10_000, search: "", isWaiting: false, ...more });

  describe("an MCP server that moved", () => {
    const isOffered = async (at: Parameters<Definitions["offered"]>[0]) =>
      (await definitions.offered(at, "tool", [tool("read")])).length > 0;

    test("requires approval again at another origin, and restores it at the old one", async () => {
      expect(await isOffered(server)).toBe(true);
      const moved = { ...server, place: { ...server.place, url: "https://files.example.net/mcp" } };
      expect(await isOffered(moved)).toBe(false);
      const [waiting] = await known("files");
      expect(waiting?.state).toBe("changed");
      expect(await isOffered({ ...server, place: { ...server.place, url: "https://files.example.com/v2/mcp" } })).toBe(
        true,
      );
    });

    test("requires approval again if another machine takes a node's name", async () => {
      machine = "node_1";
      expect(await isOffered(atNode)).toBe(true);
      machine = "node_2";
      expect(await isOffered(atNode)).toBe(false);
      expect(await definitions.statesOf(atNode, "tool", [tool("read")])).toEqual(["changed"]);
    });

    test("compares a known tool list again at another origin", async () => {
      const listed = [tool("read")];
      expect(namesOf(await definitions.offered(server, "tool", listed))).toEqual(["read"]);
      expect(namesOf(await definitions.offered(atNode, "tool", listed))).toEqual([]);
    });
  });

  describe("a change outside the text that models read", () => {
    const offered = async (more: object) =>
      namesOf(await definitions.offered(server, "tool", [{ ...tool("read"), ...more }]));

    test.each<[string, object, object]>([
      [
        "another page to show",
        { _meta: { ui: { resourceUri: "ui://a" } } },
        { _meta: { ui: { resourceUri: "ui://b" } } },
      ],
      ["a first _meta", {}, { _meta: { ui: { resourceUri: "ui://b" } } }],
      ["another icon", { icons: [{ src: "https://a/i.png" }] }, { icons: [{ src: "https://b/i.png" }] }],
      [
        "a long icon with another end",
        { icons: [{ src: `data:${"a".repeat(9_000)}` }] },
        { icons: [{ src: `data:${"a".repeat(8_999)}b` }] },
      ],
      ["another way to run", { execution: { taskSupport: "optional" } }, { execution: { taskSupport: "required" } }],
      ["a member that the gateway does not know", { "x-new": 1 }, { "x-new": 2 }],
      ["a member named origin", {}, { origin: "https://files.example.com" }],
      ["a member named __proto__", {}, JSON.parse('{"__proto__": {"a": 1}}')],
    ])("requires approval for a change: %s", async (_, before, after) => {
      expect(await offered(before)).toEqual(["read"]);
      expect(await offered(after)).toEqual([]);
      expect(await offered(before)).toEqual(["read"]);
    });

    test("requires no approval for fields that differ in each message", async () => {
      const listed = (traceparent: string) => ({ _meta: { traceparent, progressToken: traceparent, ui: {} } });
      expect(await offered(listed("00-a"))).toEqual(["read"]);
      expect(await offered(listed("00-b"))).toEqual(["read"]);
    });
  });

  describe("a tool list", () => {
    test("neither compares an unchanged tool list again nor reads the database for it", async () => {
      const listed = Array.from({ length: 500 }, (_, i) => tool(`read_${i}`));
      const first = await definitions.offered(server, "tool", listed);
      const asked = reads;
      expect(await definitions.offered(server, "tool", listed)).toBe(first);
      expect(reads).toBe(asked);
      // What is read again after a while is the same.
      clock.advance(11_000);
      expect(await definitions.offered(server, "tool", listed)).toBe(first);
      expect(reads).toBe(asked + 1);
    });

    test("records at most 16 MiB of a server's changing definitions, the first ones kept", async () => {
      const long = (round: number) => Array.from({ length: 28 }, (_, i) => tool(`r${round}_${i}`, "x".repeat(250_000)));
      const offered: number[] = [];
      for (let round = 0; round < 5; round++) {
        offered.push((await definitions.offered({ ...server, approval: "all" }, "tool", long(round))).length);
      }
      expect(offered).toEqual([28, 28, 11, 0, 0]);
      expect(await definitions.offered({ ...server, approval: "all" }, "tool", long(0))).toHaveLength(28);
    });

    test("compares a tool list again after its approval at another replica", async () => {
      const listed = [tool("read")];
      await definitions.offered(server, "tool", listed);
      const changed = [tool("read", "Reads, and tells everybody.")];
      expect(namesOf(await definitions.offered(server, "tool", changed))).toEqual([]);
      const elsewhere = new Definitions({
        store: new SqlDefinitionStore(opened.db),
        ...{ nodes, announce() {}, clock, log: silentLog },
      });
      await elsewhere.offered({ ...server, approval: "all" }, "tool", changed);
      clock.advance(11_000);
      expect(namesOf(await definitions.offered(server, "tool", changed))).toEqual(["read"]);
    });
  });

  test("records no more of a server's definitions than is ever read", async () => {
    const long = "x".repeat(250_000);
    const names = (count: number, said: string) =>
      definitions.offered(
        server,
        "tool",
        Array.from({ length: count }, (_, i) => tool(`read_${i}`, said)),
      );
    expect((await names(100, long)).length).toBe(67);
    // What is taken goes on to be offered.
    expect((await names(67, long)).length).toBe(67);
    const kept = (await known(server.name)).reduce((sum, { seen }) => sum + seen.length, 0);
    expect(kept).toBeLessThan(16 * 1024 * 1024);
  });

  test("pages thousands of definitions by kind and name, pending ones first, with case-insensitive search", async () => {
    const tools = Array.from({ length: 1_000 }, (_, i) =>
      tool(`read_${i}`, i === 990 ? "Of the River Danube." : "Reads."),
    );
    await definitions.offered(server, "tool", tools);
    await definitions.offered(server, "prompt", []);
    await definitions.offered(server, "tool", [...tools, tool("read_new", "Of a river.")]);
    expect((await known(server.name)).length).toBe(1_001);
    const names: string[] = [];
    for (let after: { kind: "tool"; name: string } | undefined; ; ) {
      const page = await definitions.page(server.name, { after, limit: 150, search: "", isWaiting: false });
      names.push(...page.map(({ name }) => name));
      const last = page.at(-1);
      if (page.length < 150 || !last) break;
      after = { kind: "tool", name: last.name };
    }
    expect(names.toSorted()).toEqual([...tools.map(({ name }) => String(name)), "read_new"].toSorted());
    expect(new Set(names).size).toBe(1_001);
    expect(namesOfKnown(await known(server.name, { isWaiting: true }))).toEqual(["read_new"]);
    expect(namesOfKnown(await known(server.name, { search: "danube rIVER" }))).toEqual(["read_990"]);
    expect(namesOfKnown(await known(server.name, { search: "river" })).toSorted()).toEqual(["read_990", "read_new"]);
    expect(namesOfKnown(await known(server.name, { search: "river", isWaiting: true }))).toEqual(["read_new"]);
    expect(await known(server.name, { search: "inputschema" })).toEqual([]);
    expect(await known("another")).toEqual([]);
  });

  describe("a refused tool definition", () => {
    const origin = { nowSeconds: 1, clientAddress: null, requestId: null };
    const by = principalFor({ appId: "app_1" });
    const say = (said: string, approval: ToolApproval = "first", of = definitions) =>
      of.offered({ ...server, approval }, "tool", [tool("read", said)]).then(namesOf);
    const state = async () => (await known(server.name)).map((one) => one.state);

    async function refuse(said: string): Promise<void> {
      await say(said);
      const [found] = await known(server.name);
      const digest = digestOf(found?.seen ?? "");
      const what = { server, kind: "tool", name: "read", digest, state: "refused" } as const;
      await definitions.decide(by, what, origin);
    }

    test("stays refused after the server changes the definition and changes it back", async () => {
      expect(await say("Reads.")).toEqual(["read"]);
      await refuse("Reads.");
      expect(await say("Reads.")).toEqual([]);
      expect(await say("Reads more.")).toEqual([]);
      expect(await say("Reads.")).toEqual([]);
      expect(await state()).toEqual(["pending"]);
    });

    test("keeps an earlier approved definition after a changed one is refused", async () => {
      await say("Reads.");
      await refuse("Reads more.");
      expect(await say("Reads even more.")).toEqual([]);
      expect(await say("Reads.")).toEqual(["read"]);
    });

    test("stays refused whatever the server sends, even with automatic approval", async () => {
      await refuse("Reads.");
      for (const said of ["Reads more.", "Reads more.", "Reads."]) expect(await say(said, "all")).toEqual([]);
      expect(await state()).toEqual(["refused"]);
    });

    test("stays refused if another replica does not know yet", async () => {
      const elsewhere = new Definitions({
        store: new SqlDefinitionStore(opened.db),
        nodes,
        announce() {},
        clock,
        log: silentLog,
      });
      await say("Reads.");
      await say("Reads.", "all", elsewhere);
      await refuse("Reads.");
      await say("Reads more.", "all", elsewhere);
      expect(await state()).toEqual(["refused"]);
      await elsewhere.reload();
      expect(await say("Reads more.", "all", elsewhere)).toEqual([]);
    });
  });

  describe("an MCP server with per-person definitions", () => {
    const origin = { nowSeconds: 1, clientAddress: null, requestId: null };
    const say = (said: string, of: Parameters<Definitions["offered"]>[0] = personal) =>
      definitions.offered(of, "tool", [tool("read", said)]).then(namesOf);
    const onRecord = async () => (await known(personal.name))[0];
    /** Decides about what waits, or was said last; gives what it says of itself. */
    async function decide(state: "approved" | "refused"): Promise<unknown> {
      const seen = (await onRecord())?.seen ?? "{}";
      const what = { server: personal, kind: "tool", name: "read", digest: digestOf(seen), state } as const;
      await definitions.decide(principalFor({ appId: "app_1" }), what, origin);
      return (JSON.parse(seen) as { description: string }).description;
    }

    test("approves each person's text once, then offers all approved ones without writing", async () => {
      expect(await say("Reads for Ann.")).toEqual(["read"]);
      expect(await say("Reads for Bob.")).toEqual([]);
      expect(await decide("approved")).toBe("Reads for Bob.");
      const before = writes;
      for (let round = 0; round < 5; round++) {
        clock.advance(3_600_000);
        for (const name of ["Ann", "Bob"]) expect(await say(`Reads for ${name}.`)).toEqual(["read"]);
      }
      expect(writes).toBe(before);
      expect(await onRecord()).toMatchObject({ state: "approved" });
    });

    test("holds one text for decision at a time, replaced after the decision or an hour", async () => {
      await say("Reads for Ann.");
      const before = writes;
      for (let round = 0; round < 5; round++) {
        for (const name of ["Bob", "Cem"]) expect(await say(`Reads for ${name}.`)).toEqual([]);
        expect(await say("Reads for Ann.")).toEqual(["read"]);
      }
      expect(writes).toBe(before + 1);
      expect((await definitions.waiting()).get(personal.name)).toBe(1);
      expect(await definitions.statesOf(personal, "tool", [tool("read", "Reads for Ann.")])).toEqual(["approved"]);
      expect(await definitions.statesOf(personal, "tool", [tool("read", "Reads for Cem.")])).toEqual(["changed"]);
      clock.advance(3_600_000);
      await say("Reads for Cem.");
      expect(await decide("approved")).toBe("Reads for Cem.");
      await say("Reads for Bob.");
      expect(await decide("approved")).toBe("Reads for Bob.");
      for (const name of ["Ann", "Bob", "Cem"]) expect(await say(`Reads for ${name}.`)).toEqual(["read"]);
    });

    test("reads only the decided definition, however much the server sends", async () => {
      await say("Reads for Ann.");
      await say("Reads for Bob.");
      const before = reads;
      await decide("approved");
      expect(reads).toBe(before);
      expect(await say("Reads for Bob.")).toEqual(["read"]);
    });

    test("refuses one text without affecting others, and never asks about either again", async () => {
      await say("Reads for Ann.");
      await say("Reads, and tells everybody.");
      await decide("refused");
      const before = writes;
      for (let round = 0; round < 3; round++) {
        clock.advance(3_600_000);
        expect(await say("Reads, and tells everybody.")).toEqual([]);
        expect(await say("Reads for Ann.")).toEqual(["read"]);
      }
      expect(writes).toBe(before);
      expect((await definitions.waiting()).get(personal.name)).toBeUndefined();
      // Not where all is offered either, nor once it is the same for everybody.
      expect(await say("Reads, and tells everybody.", { ...personal, approval: "all" })).toEqual([]);
      expect(await say("Reads, and tells everybody.", server)).toEqual([]);
    });

    test("refuses all texts if none is pending, so that approved ones need approval again", async () => {
      await say("Reads for Ann.");
      await say("Reads for Bob.");
      await decide("approved");
      await decide("refused");
      for (const name of ["Bob", "Ann", "Bob"]) expect(await say(`Reads for ${name}.`)).toEqual([]);
      expect(await onRecord()).toMatchObject({ state: "pending", approved: null, approvedOthers: [] });
      expect(await decide("approved")).toBe("Reads for Ann.");
      expect(await say("Reads for Ann.")).toEqual(["read"]);
      expect(await say("Reads for Bob.")).toEqual([]);
    });

    test("keeps refused texts refused after later refusals, with or without approvals", async () => {
      const each = { ...personal, approval: "each" } as const;
      for (const name of ["Ann", "Bob", "Cem"]) {
        await say(`Reads for ${name}.`, each);
        expect(await decide("refused")).toBe(`Reads for ${name}.`);
      }
      const before = writes;
      for (const name of ["Ann", "Bob", "Cem"]) expect(await say(`Reads for ${name}.`, each)).toEqual([]);
      expect(writes).toBe(before);
      expect((await definitions.waiting()).get(personal.name)).toBeUndefined();
    });

    test("asks again for the oldest approvals beyond nine texts, one at a time", async () => {
      for (let i = 0; i < 12; i++) {
        await say(`Reads for ${i}.`);
        if ((await onRecord())?.state !== "approved") await decide("approved");
      }
      const offered: number[] = [];
      for (let i = 0; i < 12; i++) if ((await say(`Reads for ${i}.`)).length > 0) offered.push(i);
      expect(offered).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11]);
      expect(await onRecord()).toMatchObject({ state: "changed" });
    });

    test("records per-person texts once an hour with automatic approval", async () => {
      const all = { ...personal, approval: "all" } as const;
      for (let round = 0; round < 6; round++) {
        for (const name of ["Ann", "Bob"]) expect(await say(`Reads for ${name}.`, all)).toEqual(["read"]);
        clock.advance(1_000_000);
      }
      expect(writes).toBe(2);
    });
  });
});
