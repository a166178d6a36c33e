// Reads of MCP servers while operators change them.
import { expect, test } from "bun:test";
import { silentLog } from "../../../tests/support/data-directory.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import type { StoredMcpServer } from "../../domain/tools/mcp-server-store.ts";
import { ManagedServers } from "./managed-servers.ts";

const origin = { requestId: "req_1", nowSeconds: 1, clientAddress: null };

test("does not restore a deleted server from an older read", async () => {
  let rows: StoredMcpServer[] = [];
  let held: Promise<void> | undefined;
  const servers = new ManagedServers({
    store: {
      async listMcpServers() {
        const read = [...rows];
        await held;
        return read;
      },
      async insertMcpServer(server) {
        rows.push(server);
        return true;
      },
      changeMcpServer: async () => [],
      async deleteMcpServer() {
        rows = [];
        return [];
      },
    },
    ...{ file: () => [], sealingKey: [Buffer.alloc(32)], log: silentLog, announce() {}, ended() {} },
    ...{ findNode: async () => undefined, waiting: async () => new Map() },
  });
  const operator = principalFor({ scopes: new Set(["admin:manage"]) });
  await servers.add(operator, { name: "files", url: "https://tools.example.com/mcp" }, origin);
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  // The watcher of other processes reads in this way.
  const read = servers.load();
  held = undefined;
  const removed = servers.remove(operator, "files", origin);
  await Bun.sleep(1);
  resolve();
  await Promise.all([read, removed]);
  expect(servers.find("files")).toBeUndefined();
});
