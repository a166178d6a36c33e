// What is served from the start, and what is loaded by the first request for it: one table to whoever asks.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { RouteTable } from "../../src/http/exchange/route-table.ts";
import { createFirstRoutes } from "../../src/http/first-routes.ts";
import { createRoutes, type RouteDeps } from "../../src/http/routes.ts";
import { startHeadrace } from "../support/headrace.ts";

/** The table describes itself; its handlers, and so what they need, are never reached by building it. */
const unreached = new Proxy({}, { get: () => undefined }) as RouteDeps;
const { routes: first, others } = createFirstRoutes(unreached);

test("hides no lazily loaded route behind an eager one, and covers all routes", async () => {
  const later = await others();
  const table = new RouteTable(first);
  for (const { method, path } of later) expect(table.find(method, path.replace("*", "any"))).toBeUndefined();
  const placeOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
  expect([...first, ...later].map(placeOf).sort()).toEqual(createRoutes(unreached).map(placeOf).sort());
});

test("answers all requests that arrive while routes load, also for unknown paths", async () => {
  await using server = await startHeadrace();
  const asked = ["/v1/keys", "/v1/usage", "/v1/nothing", "/v1/models", "/v1/account"].map(async (path) => {
    const { status } = await server.request(path);
    return status;
  });
  expect(await Promise.all(asked)).toEqual([200, 200, 404, 200, 200]);
  expect((await server.request("/v1/keys", { method: "PUT", body: {} })).headers.get("allow")).toContain("POST");
});

test("loads no shapes of management requests and no code of absent features at the start", async () => {
  const script = `await import("./src/server/serve.ts"); console.log(Object.keys(require.cache).join("\\n"));`;
  const child = Bun.spawn([process.execPath, "-e", script], { cwd: join(import.meta.dir, "..", "..") });
  const loaded = (await new Response(child.stdout).text()).split("\n").map((path) => path.split("/src/")[1] ?? "");
  expect(loaded).toContain("wire/chat.ts");
  const later = ["wire/keys.ts", "wire/models.ts", "wire/nodes.ts", "wire/upstreams.ts", "http/routes.ts"];
  const absent = ["server/workers.ts", "storage/sql/postgres-indexes.ts", "http/api/form-answer.ts"];
  expect([...later, ...absent].filter((path) => loaded.includes(path))).toEqual([]);
});
