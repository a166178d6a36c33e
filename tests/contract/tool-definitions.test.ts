// What servers say of their tools, held to what was approved, in a real database.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/domain/tools/tool-link.ts";
import { Definitions } from "../../src/mcp/servers/definitions.ts";
import { SqlDefinitionStore } from "../../src/storage/tables/tools/definition-store.ts";
import { silentLog } from "../support/data-directory.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { manualClock } from "../support/manual-clock.ts";

const server = { name: "files", approval: "first" } as const;
const tool = (name: string, description = "Reads."): JsonObject => ({ name, description, inputSchema: {} });
const namesOf = (offered: readonly JsonObject[]) => offered.map(({ name }) => name);

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let clock: ReturnType<typeof manualClock>;
  let definitions: Definitions;
  let reads = 0;

  beforeEach(async () => {
    opened = await databases.open();
    clock = manualClock();
    reads = 0;
    const store = new SqlDefinitionStore(opened.db);
    definitions = new Definitions({
      store: {
        listDefinitions(of) {
          reads++;
          return store.listDefinitions(of);
        },
        putSeen: (seen) => store.putSeen(seen),
        decide: (...decision) => store.decide(...decision),
        countWaiting: () => store.countWaiting(),
      },
      ...{ clock, log: silentLog, announce() {} },
    });
  });
  afterEach(() => opened.close());

  describe("a list", () => {
    test("a list that was compared is not looked at again while nothing changes, and the database is not asked", async () => {
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

    test("a server that says much, and something else each time, is on record with 24 MiB at most, and what came first stays", async () => {
      const long = (round: number) => Array.from({ length: 28 }, (_, i) => tool(`r${round}_${i}`, "x".repeat(250_000)));
      const offered: number[] = [];
      for (let round = 0; round < 5; round++) {
        offered.push((await definitions.offered({ ...server, approval: "all" }, "tool", long(round))).length);
      }
      expect(offered).toEqual([28, 28, 28, 0, 0]);
      expect(await definitions.offered({ ...server, approval: "all" }, "tool", long(0))).toHaveLength(28);
    });

    test("a list is compared again once it is approved at another replica", async () => {
      const listed = [tool("read")];
      await definitions.offered(server, "tool", listed);
      const changed = [tool("read", "Reads, and tells everybody.")];
      expect(namesOf(await definitions.offered(server, "tool", changed))).toEqual([]);
      const elsewhere = new Definitions({
        store: new SqlDefinitionStore(opened.db),
        announce() {},
        clock,
        log: silentLog,
      });
      await elsewhere.offered({ ...server, approval: "all" }, "tool", changed);
      clock.advance(11_000);
      expect(namesOf(await definitions.offered(server, "tool", changed))).toEqual(["read"]);
    });
  });
});
