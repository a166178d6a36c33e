// The files of deploy/prometheus are what Prometheus and Alertmanager take, each alert fires when it should and not before,
// and wakes whom it should.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { parse } from "yaml";
import { deploy, output, run, temporaryDirectory } from "./tools.ts";

const folder = join(deploy, "prometheus");
const rulesFile = join(folder, "headrace-alerts.yaml");
const routesFile = join(folder, "alertmanager.yml");
const rules: { alert: string; labels: { severity: string } }[] = parse(await Bun.file(rulesFile).text()).groups[0]
  .rules;

test("loads the Prometheus configuration with each alert", async () => {
  const said = await output(["promtool", "check", "config", "--syntax-only", join(folder, "prometheus.yml")]);
  expect(said).toContain("is valid");
  expect(await output(["promtool", "check", "rules", rulesFile])).toContain(`SUCCESS: ${rules.length} rules found`);
});

/** Series by minute, in promtool's own notation: `0+6x15` is 0, 6, 12 … */
type Series = Record<string, string>;
interface Case {
  minute: number;
  fires: Series[];
  /** What must not make it fire: the same for a moment, something else of the same metric, or less of it. */
  quiet: Series[];
}

const requests = (code: string) => `headrace_inference_requests_total{error_code="${code}"`;
const attempts = (result: string, cause: string) =>
  `headrace_upstream_attempts_total{upstream="u",model="m",result="${result}",cause="${cause}"`;
const bucket = (metric: string, le: string) => `${metric}_bucket{le="${le}",model="m"`;
const first = "headrace_time_to_first_token_seconds";
const delay = "headrace_event_loop_delay_seconds";

const cases: Record<string, Case> = {
  HeadraceDown: { minute: 3, fires: [{ "up{": "0x5" }], quiet: [{ "up{": "1x2 0 1x3" }] },
  HeadraceNotReady: { minute: 5, fires: [{ "headrace_ready{": "0x9" }], quiet: [{ "headrace_ready{": "1x3 0 1x5" }] },
  HeadraceStoreFailing: {
    minute: 3,
    fires: [{ 'headrace_check{check="database"': "0x5" }, { 'headrace_check{check="redis"': "0x5" }],
    quiet: [{ 'headrace_check{check="models"': "0x5" }, { 'headrace_check{check="database"': "1x5" }],
  },
  HeadraceDegraded: {
    minute: 12,
    fires: [{ "headrace_degraded{": "1x15" }],
    quiet: [{ "headrace_degraded{": "1x8 0x7" }],
  },
  HeadraceErrors: {
    minute: 12,
    fires: [{ [requests("upstream_error")]: "0+30x15", [requests("")]: "0+60x15" }],
    quiet: [
      { [requests("upstream_error")]: "0+1x15", [requests("")]: "0+60x15" },
      { [requests("rate_limit_exceeded")]: "0+30x15", [requests("")]: "0+60x15" },
      // One a minute is too little to tell.
      { [requests("upstream_error")]: "0+1x15" },
    ],
  },
  HeadraceInternalErrors: {
    minute: 12,
    fires: [{ 'headrace_http_requests_total{status="500"': "0+1x15" }],
    quiet: [
      { 'headrace_http_requests_total{status="503"': "0+9x15" },
      { 'headrace_http_requests_total{status="500"': "0x5 1x10" },
    ],
  },
  HeadraceUpstreamDown: {
    minute: 7,
    fires: [{ 'headrace_upstream_up{upstream="u",source="file"': "0x9" }],
    quiet: [
      { 'headrace_upstream_up{upstream="u",source="found"': "0x9" },
      {
        'headrace_upstream_up{upstream="u",source="file"': "0x9",
        'headrace_upstream_draining{upstream="u",source="file"': "1x9",
      },
    ],
  },
  HeadraceUpstreamFailing: {
    minute: 3,
    fires: [{ 'headrace_upstream_failing{upstream="u",model="m",cause="authentication"': "0x2 1x5" }],
    quiet: [
      { 'headrace_upstream_failing{upstream="u",model="m",cause="authentication"': "1x1 stale" },
      {
        'headrace_upstream_failing{upstream="u",model="m",cause="tls"': "1x9",
        'headrace_upstream_draining{upstream="u",source="file"': "1x9",
      },
    ],
  },
  HeadraceAttemptsFail: {
    minute: 12,
    fires: [{ [attempts("upstream_error", "overload")]: "0+10x15", [attempts("ok", "")]: "0+50x15" }],
    quiet: [
      { [attempts("upstream_error", "overload")]: "0+2x15", [attempts("ok", "")]: "0+60x15" },
      { [attempts("cancelled", "")]: "0+60x15", [attempts("ok", "")]: "0+6x15" },
      // One a minute is too little to tell.
      { [attempts("upstream_error", "overload")]: "0+1x15" },
    ],
  },
  HeadraceDearFallbacks: {
    minute: 12,
    fires: [{ 'headrace_fallback_extra_usd_total{model="m"': "0+0.01x15" }],
    quiet: [{ 'headrace_fallback_extra_usd_total{model="m"': "5x15" }],
  },
  HeadraceNoCapacity: {
    minute: 12,
    fires: [{ 'headrace_refusals_total{reason="capacity"': "0+6x15", [requests("")]: "0+60x15" }],
    quiet: [
      { 'headrace_refusals_total{reason="key_requests"': "0+6x15", [requests("")]: "0+60x15" },
      { 'headrace_refusals_total{reason="capacity"': "0+1x15", [requests("")]: "0+60x15" },
    ],
  },
  HeadraceSlowFirstToken: {
    minute: 25,
    fires: [
      { [bucket(first, "10")]: "0+40x30", [bucket(first, "30")]: "0+60x30", [bucket(first, "+Inf")]: "0+60x30" },
    ].map((series) => ({ ...series, [`${first}_count{model="m"`]: "0+60x30" })),
    quiet: [
      { [bucket(first, "10")]: "0+60x30", [bucket(first, "30")]: "0+60x30", [bucket(first, "+Inf")]: "0+60x30" },
    ].map((series) => ({ ...series, [`${first}_count{model="m"`]: "0+60x30" })),
  },
  HeadraceSpoolGrows: {
    minute: 22,
    fires: [{ "headrace_ledger_pending_records{": "6000+100x25" }],
    quiet: [{ "headrace_ledger_pending_records{": "9000-100x25" }, { "headrace_ledger_pending_records{": "0+100x25" }],
  },
  HeadraceSpoolUnwritable: {
    minute: 5,
    fires: [{ 'headrace_ledger_write_failures_total{store="spool"': "0x3 1x5" }],
    quiet: [{ 'headrace_ledger_write_failures_total{store="database"': "0x3 1x5" }],
  },
  HeadraceEventLoopLag: {
    minute: 12,
    fires: [
      { [bucket(delay, "0.25")]: "0+90x15", [bucket(delay, "0.5")]: "0+100x15", [bucket(delay, "+Inf")]: "0+100x15" },
    ],
    quiet: [
      { [bucket(delay, "0.25")]: "0+100x15", [bucket(delay, "0.5")]: "0+100x15", [bucket(delay, "+Inf")]: "0+100x15" },
    ],
  },
  HeadraceDescriptorsRunOut: {
    minute: 7,
    fires: [
      { "process_open_fds{": "900x9", "process_max_fds{": "1000x9" },
      { "headrace_connections_open{": "90x9", "headrace_connections_limit{": "100x9" },
    ],
    quiet: [{ "process_open_fds{": "800x9", "process_max_fds{": "1000x9" }],
  },
  HeadraceRecordsLost: {
    minute: 5,
    fires: [
      { "headrace_audit_lost_total{": "0x3 5x5" },
      { "headrace_chats_dropped_total{": "0x3 1x5" },
      { 'headrace_export_records_lost_total{sink="otlp",reason="rejected"': "0x3 1x5" },
    ],
    quiet: [{ "headrace_audit_lost_total{": "5x9" }],
  },
  HeadraceNoticesLate: {
    minute: 8,
    fires: [{ "headrace_notice_deliveries_overdue_seconds{": "700x10" }],
    quiet: [{ "headrace_notice_deliveries_overdue_seconds{": "300x10" }],
  },
  HeadraceExportLate: {
    minute: 12,
    fires: [
      { 'headrace_export_failing{sink="s3"': "1x15" },
      { 'headrace_export_failing{sink="s3"': "0x15", 'headrace_export_lag_seconds{sink="s3"': "1000x15" },
    ],
    quiet: [{ 'headrace_export_failing{sink="s3"': "1x8 0x7", 'headrace_export_lag_seconds{sink="s3"': "60x15" }],
  },
};

/** One unit test of promtool: what is firing at a minute of series. */
function unitTest(minute: number, series: Series, firing: string | undefined) {
  const target = 'job="headrace",instance="a:7545"}';
  const input_series = Object.entries(series).map(([name, values]) => ({
    series: `${name}${name.endsWith("{") ? "" : ","}${target}`,
    values,
  }));
  const exp_samples = firing === undefined ? [] : [{ labels: `{alertname="${firing}"}`, value: 1 }];
  const expr = 'count by (alertname) (ALERTS{alertstate="firing"}) > 0';
  return { interval: "1m", input_series, promql_expr_test: [{ expr, eval_time: `${minute}m`, exp_samples }] };
}

/** What promtool says against unit tests of the alerts. */
async function failures(tests: readonly ReturnType<typeof unitTest>[]): Promise<string> {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "tests.yaml");
  await Bun.write(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }));
  const { code, stdout, stderr } = await run(["promtool", "test", "rules", file]);
  return code === 0 ? "" : `${stdout}${stderr}`;
}

test("fires each alert for its fault alone, and not for similar conditions", async () => {
  expect(Object.keys(cases).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  const tests = Object.entries(cases).flatMap(([alert, { minute, fires, quiet }]) => [
    ...fires.map((series) => unitTest(minute, series, alert)),
    ...quiet.map((series) => unitTest(minute, series, undefined)),
  ]);
  expect(await failures(tests)).toBe("");
});

test("detects an alert that fails to fire and one that fires wrongly with promtool", async () => {
  expect(await failures([unitTest(3, { "up{": "1x5" }, "HeadraceDown")])).toContain("HeadraceDown");
  expect(await failures([unitTest(3, { "up{": "0x5" }, undefined)])).toContain("HeadraceDown");
});

test("loads the Alertmanager configuration, which pages for a page and not for a ticket", async () => {
  expect(await output(["amtool", "check-config", routesFile])).toContain("SUCCESS");
  const route = async (labels: readonly string[]) =>
    (await output(["amtool", "config", "routes", "test", `--config.file=${routesFile}`, ...labels])).trim();
  const receivers = { page: "pager", ticket: "tickets" };
  for (const { alert, labels } of rules) {
    const receiver = receivers[labels.severity as keyof typeof receivers];
    expect([alert, await route([`alertname=${alert}`, `severity=${labels.severity}`])]).toEqual([alert, receiver]);
  }
  expect(await route(["alertname=SomethingElse"])).toBe("tickets");
});

test("inhibits only existing alerts in Alertmanager", async () => {
  const { inhibit_rules } = parse(await Bun.file(routesFile).text());
  const named = JSON.stringify(inhibit_rules).match(/Headrace[A-Z]\w+/g) ?? [];
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => rules.every(({ alert }) => alert !== name))).toEqual([]);
});
