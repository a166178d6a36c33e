// The board of deploy/grafana has the types that Grafana publishes for boards and panels, and its queries are PromQL.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { deploy, run, temporaryDirectory, type Yaml } from "./tools.ts";
import { typeErrors } from "./typed.ts";

const board: Yaml = await Bun.file(join(deploy, "grafana", "headrace.json")).json();

const kinds = { stat: "Stat", timeseries: "TimeSeries", "state-timeline": "StateTimeline" };
const panelType = ([kind, name]: [string, string]) => {
  const file = `@grafana/schema/dist/esm/raw/composable/${name.toLowerCase()}/panelcfg/x/${name}PanelCfg_types.gen`;
  const field = kind === "stat" ? "{}" : `import("${file}").FieldConfig`;
  return `PanelOf<"${kind}", import("${file}").Options, ${field}>`;
};
/** The type of a board, each of whose panels has the options of its kind. */
const types = `
import type { Dashboard, FieldConfigSource, Panel, RowPanel } from "@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen";
type Fields<F> = { defaults: Omit<FieldConfigSource["defaults"], "custom"> & { custom?: F }; overrides: FieldConfigSource["overrides"] };
type PanelOf<K, O, F> = Omit<Panel, "type" | "options" | "fieldConfig"> & { type: K; options: Partial<O>; fieldConfig: Fields<F> };
type Checked = Omit<Dashboard, "panels"> & { panels: (RowPanel | ${Object.entries(kinds).map(panelType).join(" | ")})[] };
`;

test("contains only what Grafana's published dashboard types allow", async () => {
  expect(await typeErrors(types, board)).toEqual([]);
});

test("detects a misspelt field, panel option and option value in a Grafana dashboard", async () => {
  for (const [right, wrong] of [
    ['"schemaVersion"', '"schemaVersions"'],
    ['"showLegend"', '"showLegends"'],
    ['"mode":"multi"', '"mode":"many"'],
    ['"fillOpacity"', '"fillOpacities"'],
  ] as const) {
    const misspelt = JSON.stringify(board).replace(right, wrong);
    const [name = ""] = /\w+(?="$)/.exec(wrong) ?? [];
    expect((await typeErrors(types, JSON.parse(misspelt))).join("\n")).toContain(name);
  }
});

/** What promtool says against expressions; it has no command for them alone, so that each becomes a rule. */
async function syntaxErrors(expressions: readonly string[]): Promise<string> {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "rules.yaml");
  const rules = expressions.map((expr, index) => ({ record: `query:${index}`, expr }));
  await Bun.write(file, JSON.stringify({ groups: [{ name: "board", rules }] }));
  const { code, stderr } = await run(["promtool", "check", "rules", "--lint=none", file]);
  return code === 0 ? "" : stderr;
}

test("contains only valid PromQL in the dashboard's queries", async () => {
  const queries: string[] = board.panels.flatMap(({ targets = [] }: Yaml) => targets.map(({ expr }: Yaml) => expr));
  const filled = queries.map((query) => query.replaceAll(/\$__(rate_interval|interval|range)/g, "5m"));
  expect(filled.length).toBeGreaterThan(50);
  expect(await syntaxErrors(filled)).toBe("");
  expect(await syntaxErrors([...filled, "sum(rate(up[5m])"])).toContain("unclosed left parenthesis");
});
