// The work of the exporter at receivers that fail, hang or refuse, and what the log says of that.
import { expect, test } from "bun:test";
import { until } from "../../tests/support/headrace.ts";
import type { LogFields } from "../base/log.ts";
import type { ExportedRecord, ExportSinkState, ExportStore } from "../domain/exports.ts";
import { Exporter, type ExporterOptions, ExportFault, type ExportSink } from "./exporter.ts";
import { objectSink } from "./object-sink.ts";
import { otlpLogSink } from "./otlp.ts";
import { metricsMessage } from "./otlp-metrics.ts";

const recordOf = (seq: number): ExportedRecord => ({
  ...{ seq, id: `audit_${seq}`, kind: "audit" },
  record: {
    ...{ id: `audit_${seq}`, at: 1_800_000_000, action: "key.updated", actor: { type: "system" } },
    ...{ accountId: null, targetId: null, clientAddress: null, requestId: null, detail: {} },
  },
});

/** A store in memory with `count` records, whose clock the test moves. */
function exporting(
  count: number,
  sink: Partial<ExportSink> & Pick<ExportSink, "send">,
  options: Partial<ExporterOptions> = {},
) {
  const leases: string[] = [];
  const state: ExportSinkState = {
    ...{ name: "otlp", sentSeq: 0, sentAt: null, seenAt: 0, failingSince: null, error: null },
    ...{ waiting: count, lagSeconds: 0 },
  };
  const store: ExportStore = {
    register: async () => {},
    hold: async () => leases.push("held") > 0,
    release: async () => void leases.push("released"),
    unrequire: async () => {},
    async next(_holder, _sink, limit) {
      const end = Math.min(count, state.sentSeq + limit);
      const seqs = Array.from({ length: end - state.sentSeq }, (_, i) => state.sentSeq + i + 1);
      return seqs.length === 0 ? undefined : { end, records: seqs.map(recordOf) };
    },
    async sent(_holder, _sink, end) {
      state.sentSeq = end;
      state.waiting = count - end;
      return true;
    },
    async failed(_holder, _sink, error) {
      state.error = error;
    },
    states: async () => [state],
  };
  const lines: [string, LogFields][] = [];
  const write = (event: string, fields: LogFields = {}) => void lines.push([event, fields]);
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs, nowSeconds: () => 0 };
  const exporter = new Exporter({
    ...{
      store,
      kinds: ["audit", "requests"],
      maxAuditLag: null,
      holder: "rep_1",
      isAlone: true,
      clock,
      everyMs: 3_600_000,
      ...options,
    },
    sinks: [{ name: "otlp", limit: 10, waitSeconds: 0, ...sink }],
    log: { info: write, warn: write, error: write },
  });
  return { exporter, state, lines, clock, leases };
}

test("sends batches one after another, each after the previous one was accepted", async () => {
  const batches: number[][] = [];
  const { exporter, state } = exporting(25, {
    send: async (records) => {
      batches.push(records.map(({ seq }) => seq));
      return 0;
    },
  });
  await exporter.poll();
  await until(() => state.sentSeq === 25, "all are sent");
  expect(batches.map((batch) => [batch[0], batch.length])).toEqual([
    [1, 10],
    [11, 10],
    [21, 5],
  ]);
  await exporter.close();
});

test("pauses longer after each failure, and reports a failing receiver and its recovery once", async () => {
  let attempts = 0;
  let isAway = true;
  const { exporter, state, lines, clock } = exporting(3, {
    send: async () => {
      attempts++;
      if (isAway) throw new ExportFault("HTTP 503");
      return 1;
    },
  });
  const pollAt = async (ms: number) => {
    clock.nowMs = ms;
    await exporter.poll();
    await Bun.sleep(0);
  };
  await pollAt(0);
  await until(() => state.error === "HTTP 503", "the failure is stored");
  await pollAt(999);
  expect(attempts).toBe(1);
  await pollAt(1_000);
  await until(() => exporter.figures()[0]?.failedAttempts === 2, "the second failure");
  await pollAt(2_999);
  expect(attempts).toBe(2);
  isAway = false;
  await pollAt(3_000);
  await until(() => state.sentSeq === 3, "the batch is accepted");
  expect(lines).toEqual([
    ["export_failing", { sink: "otlp", detail: "HTTP 503", waiting: 3 }],
    ["export_records_rejected", { sink: "otlp", records: 1 }],
    ["export_recovered", { sink: "otlp" }],
  ]);
  expect(exporter.figures()).toMatchObject([{ sent: { audit: 3, requests: 0 }, failedAttempts: 2, rejected: 1 }]);
  await exporter.close();
});

test.each([
  [false, ["held", "held", "held", "held", "held", "released", "held"]],
  [true, ["held", "held", "held", "held", "held", "held"]],
])("leaves the lease to other replicas for seconds after five failures (alone: %p)", async (isAlone, expected) => {
  const send = () => Promise.reject(new ExportFault("HTTP 503"));
  const { exporter, clock, leases } = exporting(3, { send }, { isAlone });
  const pollAt = async (ms: number) => {
    clock.nowMs = ms;
    await exporter.poll();
    await Bun.sleep(0);
  };
  for (const at of [0, 10_000, 20_000, 30_000, 60_000]) await pollAt(at);
  await until(() => exporter.figures()[0]?.failedAttempts === 5, "five failures");
  for (const at of [70_000, 75_900, 76_100]) await pollAt(at);
  expect(leases).toEqual(expected);
  await exporter.close();
});

test("waits for a fuller batch only until its oldest record has waited long enough", async () => {
  const sent: number[] = [];
  const { exporter, state } = exporting(3, {
    waitSeconds: 60,
    send: async (records) => {
      sent.push(records.length);
      return 0;
    },
  });
  state.lagSeconds = 59;
  await exporter.poll();
  expect(sent).toEqual([]);
  state.lagSeconds = 60;
  await exporter.poll();
  await until(() => sent.length === 1, "the batch is sent");
  expect(sent).toEqual([3]);
  await exporter.close();
});

test("ends an attempt under way when the server stops", async () => {
  let seen: AbortSignal | undefined;
  const { exporter, state, lines } = exporting(3, {
    send: (_, signal) => {
      seen = signal;
      return new Promise(() => {});
    },
  });
  await exporter.poll();
  await until(() => seen, "the attempt begins");
  await exporter.close();
  expect([seen?.aborted, state.sentSeq, lines]).toEqual([true, 0, []]);
});

test("fails an attempt at a receiver that never answers and ignores its signal", async () => {
  const { exporter, state, lines } = exporting(3, { send: () => new Promise(() => {}) }, { deadlineMs: 20 });
  await exporter.poll();
  await until(() => state.error, "the attempt fails");
  expect(state).toMatchObject({ sentSeq: 0, error: "no answer within 0.02 s" });
  expect(lines.map(([event]) => event)).toEqual(["export_failing"]);
  await exporter.close();
});

test("takes only an answer of OTLP, or an empty one, as a sign that a collector has the records", async () => {
  let answer: string | null = "";
  let status = 200;
  const fetch = () => new Response(answer, { status });
  await using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  const resource = { serviceName: "headrace", version: "1", instanceId: "rep_1" };
  const sink = otlpLogSink({ url: `http://127.0.0.1:${server.port}/v1/logs`, headers: {} }, resource, () => "{}");
  const send = () => sink.send([recordOf(1), recordOf(2)], new AbortController().signal);
  expect(await send()).toBe(0);
  answer = '{"partialSuccess":{"rejectedLogRecords":"1"}}';
  expect(await send()).toBe(1);
  answer = "<html>Sign in</html>";
  await expect(send()).rejects.toThrow("the answer is not OTLP");
  // This is the answer of Loki.
  [status, answer] = [204, null];
  expect(await send()).toBe(0);
  [status, answer] = [202, "<html>Sign in</html>"];
  await expect(send()).rejects.toThrow("the answer is not OTLP");
  [status, answer] = [302, null];
  await expect(send()).rejects.toThrow("HTTP 302");
});

test("sends smaller messages to a collector that refuses a message for its size, in order and each record once", async () => {
  const taken: string[][] = [];
  let refused = 0;
  let maxBytes = 3_000;
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.text();
      const { resourceLogs } = JSON.parse(text) as {
        resourceLogs: { scopeLogs: { logRecords: { body: { stringValue: string } }[] }[] }[];
      };
      if (text.length > maxBytes) {
        refused++;
        return new Response("too large", { status: 413 });
      }
      taken.push(resourceLogs[0]?.scopeLogs[0]?.logRecords.map(({ body }) => body.stringValue) ?? []);
      return new Response("");
    },
  });
  const resource = { serviceName: "headrace", version: "1", instanceId: "rep_1" };
  const lineOf = ({ seq }: ExportedRecord) => String(seq).padStart(600, "0");
  const sink = otlpLogSink({ url: `http://127.0.0.1:${server.port}/v1/logs`, headers: {} }, resource, lineOf);
  const records = Array.from({ length: 12 }, (_, i) => recordOf(i + 1));
  const { signal } = new AbortController();
  expect(await sink.send(records, signal)).toBe(0);
  expect(taken.flat().map(Number)).toEqual(records.map(({ seq }) => seq));
  // The size is known from then on.
  const refusedBefore = refused;
  await sink.send(records, signal);
  expect([refusedBefore > 0, refused]).toEqual([true, refusedBefore]);
  // A record that is too large alone is not dropped: the export fails until the receiver takes it.
  maxBytes = 100;
  await expect(sink.send(records, signal)).rejects.toThrow("HTTP 413");
});

test("names an object after its records, so that a repetition replaces it with the same bytes", async () => {
  const objects: [string, string][] = [];
  const sink = objectSink({
    put: async (name, bytes) => void objects.push([name, Buffer.from(bytes).toString()]),
    ...{ lineOf: ({ seq }) => JSON.stringify({ seq }), waitSeconds: 60 },
  });
  const { signal } = new AbortController();
  await sink.send([recordOf(7), recordOf(8)], signal);
  await sink.send([recordOf(7), recordOf(8)], signal);
  await sink.send([recordOf(7), { ...recordOf(8), id: "audit_other" }], signal);
  expect(objects[0]?.[0]).toMatch(/^audit\/dt=2027-01-15\/hh=08\/000000000007-000000000008-[0-9a-f]{8}\.jsonl$/);
  expect(objects[0]?.[1]).toBe('{"seq":7}\n{"seq":8}\n');
  expect(objects[1]).toEqual(objects[0] ?? ["", ""]);
  expect(objects[2]?.[0]).not.toBe(objects[0]?.[0]);
});

test("turns Prometheus' counters, gauges and histograms into those of OTLP", () => {
  const text = [
    "# HELP requests_total Requests.",
    "# TYPE requests_total counter",
    'requests_total{model="a\\"b",result="ok"} 3',
    "# HELP open Open requests.",
    "# TYPE open gauge",
    "open 2",
    "open_broken NaN",
    "# HELP took_seconds Time.",
    "# TYPE took_seconds histogram",
    'took_seconds_bucket{route="/x",le="0.5"} 1',
    'took_seconds_bucket{route="/x",le="1"} 4',
    'took_seconds_bucket{route="/x",le="+Inf"} 6',
    'took_seconds_sum{route="/x"} 7.5',
    'took_seconds_count{route="/x"} 6',
  ].join("\n");
  const resource = { serviceName: "headrace", version: "1", instanceId: "rep_1" };
  const { resourceMetrics } = metricsMessage(text, resource, { startedAt: 100, now: 160 }) as {
    resourceMetrics: { scopeMetrics: { metrics: unknown[] }[] }[];
  };
  const times = { startTimeUnixNano: "100000000000", timeUnixNano: "160000000000" };
  const labels = (all: Record<string, string>) =>
    Object.entries(all).map(([key, value]) => ({ key, value: { stringValue: value } }));
  expect(resourceMetrics[0]?.scopeMetrics[0]?.metrics).toEqual([
    {
      ...{ name: "requests_total", description: "Requests." },
      sum: {
        ...{ aggregationTemporality: 2, isMonotonic: true },
        dataPoints: [{ ...times, attributes: labels({ model: 'a"b', result: "ok" }), asDouble: 3 }],
      },
    },
    {
      ...{ name: "open", description: "Open requests." },
      gauge: { dataPoints: [{ ...times, attributes: [], asDouble: 2 }] },
    },
    {
      ...{ name: "took_seconds", description: "Time." },
      histogram: {
        aggregationTemporality: 2,
        dataPoints: [
          {
            ...{ ...times, attributes: labels({ route: "/x" }), count: "6", sum: 7.5 },
            ...{ explicitBounds: [0.5, 1], bucketCounts: ["1", "3", "2"] },
          },
        ],
      },
    },
  ]);
});
