// What stands in the metrics: the format, times in buckets, and label sets that no client and no time makes grow.
import { describe, expect, test } from "bun:test";
import { parseMetrics } from "../../tests/support/exposition.ts";
import { GatewayError } from "../base/errors.ts";
import type { InferenceCourse } from "../domain/usage/observer.ts";
import type { UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import { BoundedSeries } from "./bounded-series.ts";
import { Exposition, formatFor, labelText } from "./exposition.ts";
import { Buckets, Histogram } from "./histogram.ts";
import { Traffic } from "./traffic.ts";

describe("the metrics text", () => {
  test("describes each metric before its samples, with any characters in labels", () => {
    const odd = 'a"b\\c\nd{e="f"} 1';
    const out = new Exposition("prometheus");
    out.family("a_total", "counter", "One\nline \\ more").sample(labelText({ model: odd, empty: "" }), 3);
    out.gauge("b", "B", Number.POSITIVE_INFINITY).gauge("c", "C", Number.NaN).gauge("d", "D", 1e-7);
    const metrics = parseMetrics(out.end());
    expect(metrics.series("a_total")).toEqual([{ model: odd, empty: "" }]);
    expect(["a_total", "b", "c", "d"].map((name) => metrics.get(name))).toEqual([3, Infinity, NaN, 1e-7]);
  });

  test("writes OpenMetrics on request", () => {
    expect(formatFor("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5")).toBe(
      "openmetrics",
    );
    for (const accept of ["", "*/*", "text/plain", "application/json"]) expect(formatFor(accept)).toBe("prometheus");
    const out = new Exposition("openmetrics");
    out.counter("a_total", "A", 1).gauge("b", "B", 2);
    const text = out.end();
    expect(text).toContain("# TYPE a counter\na_total 1\n");
    expect(parseMetrics(text, "openmetrics").get("a_total")).toBe(1);
  });
});

describe("histograms", () => {
  test("counts each time in the buckets whose bound it does not exceed, in seconds", () => {
    const histogram = new Histogram(new Buckets([0.1, 1, 2.5]));
    for (const ms of [0, 99.9, 100, 100.1, 1_000, 2_600]) histogram.observe(ms);
    const out = new Exposition("prometheus").family("h", "histogram", "H");
    out.lines(histogram.lines("h", labelText({ model: "m" })));
    const metrics = parseMetrics(out.end());
    const buckets = metrics.samples.filter(({ name }) => name === "h_bucket");
    expect(buckets.map(({ labels, value }) => [labels["le"], value])).toEqual([
      ["0.1", 3],
      ["1.0", 5],
      ["2.5", 5],
      ["+Inf", 6],
    ]);
    expect(metrics.get("h_sum", { model: "m" })).toBeCloseTo(3.9, 9);
    expect(metrics.get("h_count", { model: "m" })).toBe(6);
  });
});

describe("metric series by label", () => {
  const seriesOf = (most: number, gone: ReadonlySet<string> = new Set()) =>
    new BoundedSeries({ most, make: (label) => ({ label, count: 0 }), isGone: (value) => gone.has(value) });

  test("bounds the series by label, with one for the rest", () => {
    const series = seriesOf(3);
    for (let i = 0; i < 10_000; i++) series.of(`m${i}`).count++;
    expect([...series.all()]).toEqual([
      { label: "m0", count: 1 },
      { label: "m1", count: 1 },
      { label: "m2", count: 1 },
      { label: "other", count: 9_997 },
    ]);
  });

  test("frees a series for another label soon after its object is gone, and not before", () => {
    const gone = new Set<string>();
    const series = seriesOf(2, gone);
    for (const value of ["a", "b", "c"]) series.of(value);
    gone.add("a");
    for (let i = 0; i < 1_001; i++) series.of("c").count++;
    expect([...series.all()].map(({ label }) => label)).toEqual(["b", "c", "other"]);
  });

  test("counts a label named like the rest with the rest", () => {
    const series = seriesOf(1);
    for (const value of ["other", "a", "b", "other"]) series.of(value).count++;
    expect([...series.all()]).toEqual([
      { label: "a", count: 1 },
      { label: "other", count: 3 },
    ]);
  });
});

const begin: UsageBegin = {
  requestId: "req_1",
  at: 1,
  accountId: "acct_1",
  keyId: "key_1",
  appId: null,
  environment: "live",
  operation: "chat",
  model: "m",
  stream: true,
};
const end: UsageEnd = {
  promptTokens: 10,
  completionTokens: 21,
  estimated: false,
  outcome: "completed",
  errorCode: null,
  nanoUsd: null,
  capped: false,
  upstream: "up",
  durationMs: 1_400,
  firstTokenMs: 400,
  queueMs: 0,
};
const course: InferenceCourse = { attempts: 1, fallbackModel: undefined, isUnderReported: false, refusal: undefined };

function traffic(offered: (id: string) => boolean = () => true) {
  const counted = new Traffic({ hasModel: offered, hasUpstream: offered, nowMs: () => 1 });
  const read = (waiting: ReadonlyMap<string, number> = new Map()) => {
    const out = new Exposition("prometheus");
    counted.write(out, waiting);
    return parseMetrics(out.end());
  };
  const ended = (some: Partial<UsageBegin> = {}, how: Partial<UsageEnd> = {}, more: Partial<InferenceCourse> = {}) => {
    const request = { ...begin, ...some };
    counted.inferenceBegan(request);
    counted.inferenceEnded(request, { ...end, ...how }, { ...course, ...more });
  };
  return { counted, read, ended };
}

describe("traffic metrics", () => {
  test("measures the mean time of tokens after the first, for timed answers only", () => {
    const { ended, read } = traffic();
    ended();
    ended({}, { firstTokenMs: null });
    ended({}, { completionTokens: 1 });
    const metrics = read();
    expect(metrics.get("headrace_time_per_output_token_seconds_sum")).toBeCloseTo(0.05, 9);
    expect(metrics.get("headrace_time_per_output_token_seconds_count")).toBe(1);
    expect(metrics.get("headrace_time_to_first_token_seconds_count")).toBe(2);
    expect(metrics.get("headrace_inference_duration_seconds_count")).toBe(3);
  });

  test("counts attempts after the first as retries, and another serving model as a fallback", () => {
    const { ended, read } = traffic();
    ended({}, {}, { attempts: 3 });
    ended({}, {}, { attempts: 0 });
    ended({}, {}, { attempts: 2, fallbackModel: "n" });
    const metrics = read();
    expect(metrics.get("headrace_retries_total", { model: "m" })).toBe(3);
    expect(metrics.get("headrace_fallbacks_total", { model: "m" })).toBe(1);
  });

  test("counts outcomes of broken-off streams for models with continuations only", () => {
    const { ended, read } = traffic();
    ended({ model: "n" });
    ended({}, {}, { continuations: ["continued", "continued", "unfit"] });
    ended({}, {}, { continuations: ["failed"] });
    const reported = (outcome: string) => read().get("headrace_continuations_total", { model: "m", outcome });
    expect([reported("continued"), reported("failed"), reported("unfit")]).toEqual([2, 1, 1]);
    expect(
      read()
        .series("headrace_continuations_total")
        .every(({ model }) => model === "m"),
    ).toBe(true);
  });

  test("counts spending for models with a price only", () => {
    const { ended, read } = traffic();
    ended({ model: "free" });
    ended({ model: "dear" }, { nanoUsd: 1_500_000_000 });
    expect(read().series("headrace_spend_usd_total")).toEqual([{ model: "dear" }]);
    expect(read().get("headrace_spend_usd_total")).toBe(1.5);
  });

  test("counts an upstream's attempts by outcome", () => {
    const { counted, read } = traffic();
    const left = new DOMException("left", "AbortError");
    for (const error of [undefined, undefined, new GatewayError("upstream_timeout", "late"), left, new Error("ours")]) {
      counted.attempted("up", "m", error);
    }
    const results = ["ok", "upstream_timeout", "cancelled", "internal_error"];
    const metrics = read();
    expect(
      results.map((result) => metrics.get("headrace_upstream_attempts_total", { upstream: "up", result })),
    ).toEqual([2, 1, 1, 1]);
  });

  test("counts an upstream's attempts by model and cause, with a bound on its models", () => {
    const { counted, read } = traffic();
    const failed = new GatewayError("upstream_error", "no");
    for (let i = 0; i < 100; i++) counted.attempted("up", `m${i}`, failed, "authentication");
    counted.attempted("up", "m0", failed, "tls");
    const metrics = read();
    const attempts = "headrace_upstream_attempts_total";
    expect(metrics.get(attempts, { upstream: "up", model: "m0", result: "upstream_error", cause: "tls" })).toBe(1);
    expect(metrics.get(attempts, { upstream: "up", model: "m0", cause: "authentication" })).toBe(1);
    expect(metrics.get(attempts, { upstream: "up", model: "other", cause: "authentication" })).toBe(50);
    expect(metrics.series(attempts)).toHaveLength(52);
  });

  test("counts open requests by model down to zero, also for models without a series", () => {
    const { counted, read } = traffic();
    const all = Array.from({ length: 300 }, (_, i) => ({ ...begin, model: `m${i}` }));
    for (const one of all) counted.inferenceBegan(one);
    const open = "headrace_inference_requests_in_flight";
    expect([read().get(open), read().get(open, { model: "m0" }), read().get(open, { model: "other" })]).toEqual([
      300, 1, 100,
    ]);
    for (const one of all.toReversed()) counted.inferenceEnded(one, end, course);
    expect(read().get(open)).toBe(0);
  });

  test("counts each waiting request by model", () => {
    const { read } = traffic();
    const waiting = read(new Map([["m", 3]]));
    expect(waiting.get("headrace_inference_requests_waiting", { model: "m" })).toBe(3);
  });

  test("bounds the series of a catalog with 10,000 models and upstreams", () => {
    const { counted, ended, read } = traffic();
    for (let i = 0; i < 10_000; i++) {
      ended({ model: `m${i}` }, { upstream: `u${i}` });
      counted.attempted(`u${i}`, `m${i}`, undefined);
    }
    const metrics = read();
    expect(metrics.series("headrace_prompt_tokens_total")).toHaveLength(201);
    expect(metrics.series("headrace_upstream_attempts_total")).toHaveLength(201);
    expect(metrics.series("headrace_inference_requests_total").length).toBeLessThan(500);
    expect(metrics.get("headrace_inference_requests_total")).toBe(10_000);
    expect(metrics.get("headrace_prompt_tokens_total")).toBe(100_000);
  });

  test("bounds the series of a model whose upstreams come and go", () => {
    let newest = 0;
    const { counted, ended, read } = traffic((name) => name === "m" || Number(name.slice(1)) > newest - 2);
    for (; newest < 2_000; newest++) {
      ended({}, { upstream: `u${newest}` });
      counted.attempted(`u${newest}`, "m", undefined);
    }
    const metrics = read();
    expect(metrics.get("headrace_inference_requests_total")).toBe(2_000);
    expect(metrics.series("headrace_inference_requests_total").length).toBeLessThanOrEqual(66);
  });

  test("gives the series of removed models to new ones", () => {
    const offered = new Set(Array.from({ length: 200 }, (_, i) => `old${i}`));
    const { ended, read } = traffic((id) => offered.has(id));
    for (const model of offered) ended({ model });
    offered.clear();
    offered.add("new");
    ended({ model: "new" });
    const models = read().series("headrace_prompt_tokens_total");
    expect(models).toHaveLength(200);
    expect(models).toContainEqual({ model: "new" });
  });

  test("counts unknown methods and malformed requests as one", () => {
    const { counted, read } = traffic();
    for (const method of ["BREW", "get", "", "X".repeat(9_000)]) {
      counted.httpEnded({ requestId: "req_1", method, route: undefined, status: 404, durationMs: 1 });
    }
    expect(read().series("headrace_http_requests_total")).toEqual([{ route: "none", method: "other", status: "404" }]);
    expect(read().get("headrace_http_request_duration_seconds_count")).toBe(4);
  });
});
