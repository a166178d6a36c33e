// The dashboard, the alerts and docs/observability.md speak of metrics, labels and sections that there are.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type Metrics, scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const root = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Panel {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { uid: string };
  targets?: { expr: string; datasource: { uid: string } }[];
}
interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

const dashboard = JSON.parse(read("deploy/grafana/headrace.json"));
const panels: Panel[] = dashboard.panels;
const rules: Rule[] = parse(read("deploy/prometheus/headrace-alerts.yaml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const guide = read("docs/observability.md");
/** Rows of the guide's list: a metric, and its labels. */
const listed = new Map(
  [
    ...(guide.split("### The list")[1]?.split("| Here ")[0] ?? "").matchAll(
      /^\| `((?:headrace|process)_\w+)` +\| ([^|]*)\|.*\|$/gm,
    ),
  ].map(([, name = "", labels = ""]) => [name, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label as string)]),
);

let server: TestServer;
let upstream: ScriptedUpstream;
let metrics: Metrics;

beforeAll(async () => {
  upstream = await startUpstream();
  const price = "price: { input: 1, output: 1 }";
  const model = "deployments: [{ upstream: up, model: upstream-model }]";
  server = await startHeadrace({ yaml: upstreamYaml(upstream, `models: [{ id: mine, ${price}, ${model} }]\n`) });
  const messages = [{ role: "user", content: "Hi" }];
  const answer = await server.request("/v1/chat/completions", { body: { model: "mine", messages } });
  expect(answer.status).toBe(200);
  await answer.text();
  metrics = await scrape(server);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** Metrics of an expression, without what a histogram adds to its name. */
function namesIn(expression: string): string[] {
  const names = expression.match(/\b(headrace|process)_[a-z\d_]+\b/g) ?? [];
  return names.map((name) => {
    const base = name.replace(/_(bucket|sum|count)$/, "");
    return metrics.types.get(base) === "histogram" ? base : name;
  });
}

/** What Prometheus adds when it scrapes, and the bounds of histograms. */
const always = ["job", "instance", "le"];

/** Labels that an expression selects or groups by, and that none of its metrics has. */
function unknownLabels(expression: string): string[] {
  const known = new Set([...always, ...namesIn(expression).flatMap((name) => listed.get(name) ?? [])]);
  const selected = [...expression.matchAll(/([a-z_]+) *(?:=~|!~|!=|=)"/g)].map(([, label]) => label as string);
  const grouped = [...expression.matchAll(/\b(?:by|on) ?\(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/, */));
  return [...selected, ...grouped].filter((label) => !known.has(label));
}

describe("the observability guide", () => {
  test("lists exactly the server's metrics in the guide", () => {
    expect([...listed.keys()].toSorted()).toEqual([...metrics.types.keys()].toSorted());
  });

  test("names each metric's labels in the guide", () => {
    const samples = Map.groupBy(metrics.samples, ({ name }) => namesIn(name)[0] ?? name);
    for (const [name, some] of samples) {
      const labels = Object.keys(some[0]?.labels ?? {}).filter((label) => label !== "le");
      expect([name, listed.get(name)]).toEqual([name, labels]);
    }
  });
});

describe("Prometheus alerts", () => {
  test("covers the alerts that an operator needs, each once", () => {
    const names = rules.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(10);
  });

  test.each(rules)("uses existing metrics and labels in $alert, and says what to do", (rule) => {
    const names = namesIn(rule.expr);
    expect(names.filter((name) => !metrics.types.has(name))).toEqual([]);
    if (!/^up\{/.test(rule.expr)) expect(names.length).toBeGreaterThan(0);
    expect(unknownLabels(rule.expr)).toEqual([]);
    expect(["page", "ticket"]).toContain(rule.labels["severity"] ?? "");
    const { summary = "", description = "", runbook_url: runbook = "" } = rule.annotations;
    expect(summary.length).toBeGreaterThan(10);
    expect(description.length).toBeGreaterThan(summary.length / 2);
    expect(runbook).toBe(`docs/observability.md#${rule.alert.toLowerCase()}`);
    const section = new RegExp(`^### ${rule.alert}\n\n(.+)`, "m").exec(guide)?.[1] ?? "";
    expect(section.length).toBeGreaterThan(80);
  });

  test("documents only existing alerts", () => {
    const sections = [...guide.matchAll(/^### (Headrace\w+)$/gm)].map(([, name]) => name as string);
    expect(sections.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  });
});

describe("the Grafana dashboard", () => {
  const asking = panels.filter(({ targets }) => targets);
  const expressions = asking.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

  test("queries existing metrics and labels of the chosen job and replica", () => {
    expect(expressions.length).toBeGreaterThan(50);
    for (const { title, expr } of expressions) {
      const names = namesIn(expr);
      expect([title, names.length]).not.toEqual([title, 0]);
      expect([title, names.filter((name) => !metrics.types.has(name)), unknownLabels(expr)]).toEqual([title, [], []]);
      const selectors = [...expr.matchAll(/(?:headrace|process)_\w+\{([^}]*)\}/g)].map(([, selector]) => selector);
      expect([title, selectors.length]).toEqual([title, names.length]);
      for (const selector of selectors) expect(selector).toStartWith('job="$job",instance=~"$instance"');
    }
  });

  test("shows every metric of the server", () => {
    const shown = new Set(expressions.flatMap(({ expr }) => namesIn(expr)));
    const elsewhere = ["headrace_ready", "headrace_degraded"];
    expect([...metrics.types.keys()].filter((name) => !shown.has(name) && !elsewhere.includes(name))).toEqual([]);
  });

  test("lets the reader choose data source, job, replica and model, without overlapping panels", () => {
    const variables = dashboard.templating.list.map((variable: { name: string }) => variable.name);
    expect(variables).toEqual(["datasource", "job", "instance", "model"]);
    for (const { datasource, targets = [] } of asking) {
      for (const one of [datasource, ...targets.map((target) => target.datasource)]) {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own way to name a variable.
        expect(one?.uid).toBe("${datasource}");
      }
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { gridPos } of panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`)).toBe(false);
          expect(x).toBeLessThan(24);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});

test("lets Prometheus read the alerts, with a token from a file", () => {
  const config = parse(read("deploy/prometheus/prometheus.yml"));
  expect(config.rule_files).toEqual(["headrace-alerts.yaml"]);
  const [job] = config.scrape_configs;
  expect([job.job_name, job.metrics_path ?? "/metrics"]).toEqual(["headrace", "/metrics"]);
  expect(job.authorization.credentials_file).toStartWith("/");
});
