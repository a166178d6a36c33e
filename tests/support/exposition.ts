// Reads metrics as strictly as Prometheus does, and more so: what is out of order, twice or inconsistent is an error.
import type { TestServer } from "./headrace.ts";

type Labels = Readonly<Record<string, string>>;

export interface Sample {
  name: string;
  labels: Labels;
  value: number;
}

export interface Metrics {
  text: string;
  types: ReadonlyMap<string, string>;
  samples: readonly Sample[];
  /** The sum of the samples that have these labels at least; undefined where there is none. */
  get(name: string, labels?: Labels): number | undefined;
  /** Sets of labels of a name. */
  series(name: string): Labels[];
}

const label = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"/y;

/** Throws an Error that quotes the line. */
export function parseMetrics(text: string, format: "prometheus" | "openmetrics" = "prometheus"): Metrics {
  const isOpenMetrics = format === "openmetrics";
  const end = isOpenMetrics ? "\n# EOF\n" : "\n";
  if (!text.endsWith(end)) throw new Error(`It does not end in ${JSON.stringify(end)}.`);
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  const seen = new Set<string>();
  let family = "";
  let helped = "";
  for (const line of text.slice(0, -end.length).split("\n")) {
    const fail = (what: string): never => {
      throw new Error(`${what}: ${line}`);
    };
    const [, comment, about = "", rest = ""] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line) ?? [];
    if (comment === "HELP") {
      helped = about;
    } else if (comment === "TYPE") {
      if (about !== helped) fail("TYPE without its HELP before it");
      if (types.has(about)) fail("A metric that stands there twice");
      if (!["counter", "gauge", "histogram"].includes(rest)) fail("An unknown type");
      types.set(about, rest);
      family = about;
    } else {
      const sample = parseSample(line) ?? fail("No sample");
      const type = types.get(family) ?? fail("A sample before any TYPE");
      if (!namesOf(family, type, isOpenMetrics).includes(sample.name)) fail(`A sample in the midst of ${family}`);
      const identity = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).toSorted())}`;
      if (seen.has(identity)) fail("A series that stands there twice");
      seen.add(identity);
      if (type !== "gauge" && !(sample.value >= 0)) fail("Less than nothing");
      samples.push(sample);
    }
  }
  for (const [name, type] of types) if (type === "histogram") checkHistogram(name, samples);
  const matching = (name: string, labels: Labels) =>
    samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    );
  return {
    ...{ text, types, samples },
    get(name, labels = {}) {
      const found = matching(name, labels);
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
    series: (name) => matching(name, {}).map(({ labels }) => labels),
  };
}

/** Asks from this machine, as development allows it, or with what `headers` say. */
export async function scrape(server: Pick<TestServer, "url">, headers: Record<string, string> = {}): Promise<Metrics> {
  const response = await fetch(`${server.url}/metrics`, { headers });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return parseMetrics(text);
}

function namesOf(family: string, type: string, isOpenMetrics: boolean): string[] {
  if (type === "histogram") return ["bucket", "sum", "count"].map((part) => `${family}_${part}`);
  if (type !== "counter") return [family];
  // The name says what it is, in either format.
  return isOpenMetrics ? [`${family}_total`] : family.endsWith("_total") ? [family] : [];
}

function parseSample(line: string): Sample | undefined {
  const [, name = "", , inner = "", number = ""] = /^([a-zA-Z_:][\w:]*)(\{(.+)\})? (\S+)$/.exec(line) ?? [];
  if (!/^([+-]?(\d+(\.\d+)?(e[+-]?\d+)?|Inf)|NaN)$/i.test(number)) return undefined;
  const labels: Record<string, string> = {};
  let position = 0;
  while (position < inner.length) {
    label.lastIndex = position;
    const [whole, key = "", value = ""] = label.exec(inner) ?? [];
    if (whole === undefined || key in labels) return undefined;
    labels[key] = value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
    position += whole.length;
    if (position === inner.length) break;
    if (inner[position] !== ",") return undefined;
    position++;
  }
  return { name, labels, value: Number(number.replace("Inf", "Infinity")) };
}

/** Expects of each set of labels: bounds that rise, counts that do not fall, the infinite bucket, sum and count. */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const by = (part: string) =>
    Map.groupBy(
      samples.filter((one) => one.name === `${name}_${part}`),
      ({ labels: { le: _, ...others } }) => JSON.stringify(others),
    );
  const [all, sums, counts] = [by("bucket"), by("sum"), by("count")];
  for (const [labels, buckets] of all) {
    const bounds = buckets.map((bucket) => Number(bucket.labels["le"]?.replace("Inf", "Infinity")));
    const values = buckets.map(({ value }) => value);
    const isRising = bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] as number));
    const isCumulative = values.every((value, i) => i === 0 || value >= (values[i - 1] as number));
    const [count, ...more] = counts.get(labels) ?? [];
    const isWhole = bounds.at(-1) === Number.POSITIVE_INFINITY && more.length === 0 && sums.get(labels)?.length === 1;
    if (!isRising || !isCumulative || !isWhole || values.at(-1) !== count?.value) {
      throw new Error(`A histogram that does not add up: ${name} ${labels}`);
    }
  }
  if (sums.size !== all.size || counts.size !== all.size) throw new Error(`Sums apart: ${name}`);
}
