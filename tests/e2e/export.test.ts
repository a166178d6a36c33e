// The export of a running server: metrics at a collector, a store that fails, and changes that audit.required refuses.
import { expect, test } from "bun:test";
import { openBeside } from "../../src/storage/sql/database.ts";
import { scrape } from "../support/exposition.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { startObjectServer } from "../support/object-server.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

test("tells of a failing store everywhere, and refuses changes but no requests and no revocations", async () => {
  await using upstream = await startUpstream();
  await using store = startObjectServer();
  store.isAway = true;
  const s3 = `{ endpoint: "${store.url}", bucket: audit-log, access_key_id: a, secret_access_key: CANARYSECRET, every_seconds: 1 }`;
  const yaml = `${upstreamYaml(upstream)}export: { s3: ${s3} }\naudit: { required: true, max_lag_seconds: 30 }\n`;
  await using server = await startHeadrace({ yaml, flags: { logFormat: "json" } });
  const operator = await makeOperatorKey(server.dataDir);
  const create = () => server.request("/v1/keys", { body: { name: "made" } });
  const made = (await (await create()).json()) as { id: string };
  await until(() => server.logged("export_failing").length > 0, "the failure is logged", 20_000);
  const system = async () => {
    const headers = { authorization: `Bearer ${operator}` };
    return (await (await fetch(`${server.url}/v1/admin/system`, { headers })).json()) as { exports: object[] };
  };
  const failing = await until(
    async () => {
      const { exports } = await system();
      return exports.find((one) => "failure" in one && one.failure !== null);
    },
    "the state says so",
    20_000,
  );
  expect(failing).toMatchObject({
    receiver: "s3",
    records: true,
    failure: expect.stringContaining("the store refuses"),
  });
  const metrics = await scrape(server, { authorization: `Bearer ${operator}` });
  expect(metrics.get("headrace_export_failing", { sink: "s3" })).toBe(1);
  expect(JSON.stringify([failing, server.logText()])).not.toContain("CANARYSECRET");

  const db = await openBeside(server.dataDir);
  await db`UPDATE export_sinks SET failing_since = failing_since - 60`;
  const refused = await create();
  expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining("Nothing was changed")]);
  const revoked = await server.request(`/v1/keys/${made.id}`, { method: "DELETE" });
  expect(revoked.status).toBeLessThan(300);
  const body = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };
  expect((await server.request("/v1/chat/completions", { body })).status).toBe(200);

  store.isAway = false;
  await until(() => server.logged("export_recovered").length > 0, "the export goes on", 60_000);
  await db.close();
  expect((await create()).status).toBeLessThan(300);
}, 120_000);

test("posts the metrics of Prometheus to a collector, and the last ones at the stop", async () => {
  const bodies: { path: string; key: string | null; text: string }[] = [];
  await using collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const [path, key] = [new URL(request.url).pathname, request.headers.get("x-key")];
      bodies.push({ path, key, text: await request.text() });
      return Response.json({});
    },
  });
  const otlp = `{ endpoint: "http://127.0.0.1:${collector.port}/base/", headers: { x-key: k }, logs: false }`;
  {
    await using server = await startHeadrace({ yaml: `export: { otlp: ${otlp} }\n` });
    await server.request("/v1/models");
  }
  expect(bodies.map(({ path, key }) => [path, key])).toEqual([["/base/v1/metrics", "k"]]);
  const { resourceMetrics } = JSON.parse(bodies[0]?.text ?? "") as {
    resourceMetrics: { scopeMetrics: { metrics: { name: string }[] }[] }[];
  };
  const names = resourceMetrics[0]?.scopeMetrics[0]?.metrics.map(({ name }) => name) ?? [];
  expect(names).toContain("headrace_build_info");
  expect(names.length).toBeGreaterThan(50);
});
