// Whatever kills the server during an export: each receiver has every record once, in order, and no content.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase, openPostgres } from "../../src/storage/sql/database.ts";
import { until } from "../support/headrace.ts";
import { startObjectServer } from "../support/object-server.ts";
import { freshDatabase } from "../support/postgres.ts";
import { json, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

interface LogRecord {
  body: { stringValue: string };
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
}
interface Line {
  sequence: number;
  id: string;
  object: string;
}

/** A collector of log records that answers, or leaves requests without an answer. */
function startLogCollector() {
  const bodies: string[] = [];
  const state = { hangs: false };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.text();
      if (!request.url.endsWith("/v1/logs")) return Response.json({});
      bodies.push(text);
      return state.hangs ? new Promise<Response>(() => {}) : Response.json({});
    },
  });
  const records = () =>
    bodies.flatMap((body) => {
      const { resourceLogs } = JSON.parse(body) as {
        resourceLogs: { scopeLogs: { logRecords: LogRecord[] }[] }[];
      };
      return resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
    });
  return { url: `http://127.0.0.1:${server.port}`, bodies, state, records, stop: () => server.stop(true) };
}

test.each(["sqlite", "postgres"])(
  "exports each record once and in order over kill -9, on %s",
  async (database) => {
    const directory = mkdtempSync(join(tmpdir(), "headrace-export-kill-"));
    const dataDir = join(directory, "data");
    const config = join(directory, "headrace.yaml");
    await using upstream = await startUpstream();
    await using store = startObjectServer();
    const collector = startLogCollector();
    upstream.script((_, res) => {
      const message = { role: "assistant", content: "CANARYANSWER" };
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      json(res, 200, { id: "c", object: "chat.completion", created: 1, model: "upstream-model", choices, usage });
    });
    const url = database === "postgres" ? await freshDatabase() : undefined;
    const s3 = `{ endpoint: "${store.url}", bucket: audit-log, access_key_id: a, secret_access_key: CANARYSECRET, every_seconds: 1 }`;
    writeFileSync(
      config,
      upstreamYaml(upstream, `export: { otlp: { endpoint: "${collector.url}", metrics: false }, s3: ${s3} }\n`),
    );
    const env = url === undefined ? {} : { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "ab".repeat(32) };
    const start = () => startServerProcess({ config, dataDir, env });
    const call = async (base: string, path: string, body: unknown) => {
      const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      await (await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) })).text();
    };
    const open = () => (url === undefined ? openDatabase(join(dataDir, "headrace.db")) : openPostgres(url));
    try {
      for (let round = 0; round < 3; round++) {
        // The server exports from its start on.
        collector.state.hangs = round === 1;
        store.isAway = round === 2;
        const before = [collector.bodies.length, store.objects.size];
        await using server = await start();
        for (let asked = 0; asked < 10; asked++) {
          const messages = [{ role: "user", content: "CANARYPROMPT" }];
          await call(server.url, "/v1/chat/completions", { model: "upstream-model", messages });
          await call(server.url, "/v1/keys", { name: `key ${round} ${asked}` });
        }
        const isUnderWay = () =>
          round === 2 ? collector.bodies.length > (before[0] ?? 0) : store.objects.size > (before[1] ?? 0);
        await until(isUnderWay, "the export is under way", 20_000);
        server.process.kill("SIGKILL");
        await server.process.exited;
        // The lease of a dead process of another replica would hold for half a minute.
        const left = await open();
        await left`UPDATE export_lease SET held_until = 0`;
        await left.close();
      }
      collector.state.hangs = false;
      store.isAway = false;
      const db = await open();
      await using server = await start();
      const isComplete = async () => {
        const waiting: unknown[] = await db`SELECT record_id FROM export_queue LIMIT 1`;
        const [lease]: { seq: number | string }[] = await db`SELECT seq FROM export_lease`;
        return waiting.length === 0 && Number(lease?.seq) > 60;
      };
      await until(isComplete, "all records are exported", 30_000);
      const ids: { id: string }[] =
        await db`SELECT request_id AS id FROM usage_records UNION ALL SELECT id FROM audit_log WHERE action <> 'session.started'`;
      await db.close();
      expect(server.process.exitCode).toBeNull();

      const lines = [...store.objects.values()]
        .flatMap((bytes) => bytes.toString("utf8").trim().split("\n"))
        .map((line): Line => JSON.parse(line));
      lines.sort((a, b) => a.sequence - b.sequence);
      const received = collector.records().map(({ body, attributes }) => ({
        line: JSON.parse(body.stringValue) as Line,
        uid: attributes.find(({ key }) => key === "log.record.uid")?.value.stringValue,
      }));
      const once = [...new Map(received.map((one) => [one.uid, one.line])).values()];
      // Both receivers have the same records, without gap or double.
      const sequence = Array.from({ length: lines.length }, (_, i) => i + 1);
      expect(lines.map((line) => line.sequence)).toEqual(sequence);
      expect(once.map((line) => line.sequence)).toEqual(sequence);
      expect(once).toEqual(lines);
      expect(received.every(({ uid, line }) => uid === line.id)).toBe(true);
      // They are those of the database: all requests and all events since the receivers are known.
      const known = new Set(ids.map(({ id }) => id));
      expect(lines.filter(({ id }) => !known.has(id))).toEqual([]);
      expect(lines.filter(({ object }) => object === "request")).toHaveLength(30);
      expect(lines.filter(({ object }) => object === "audit_event").length).toBeGreaterThanOrEqual(30);
      const everything = [...store.objects.values(), ...collector.bodies].join("");
      expect(everything).toContain('"prompt_tokens"');
      for (const canary of ["CANARYPROMPT", "CANARYANSWER", "CANARYSECRET"]) expect(everything).not.toContain(canary);
    } finally {
      await collector.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  },
  300_000,
);
