// Writes metrics in Prometheus' text format 0.0.4, or in OpenMetrics 1.0 if the client requests it.

export type ExpositionFormat = "prometheus" | "openmetrics";

export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Returns the format that the client's `Accept` header requests. */
export function formatFor(accept: string): ExpositionFormat {
  return /\bapplication\/openmetrics-text\b/i.test(accept) ? "openmetrics" : "prometheus";
}

type MetricType = "counter" | "gauge" | "histogram";

export class Exposition {
  readonly #format: ExpositionFormat;
  #text = "";
  #name = "";

  constructor(format: ExpositionFormat) {
    this.#format = format;
  }

  /** Begins a metric. Its samples must follow. The name of a counter must end in `_total`. */
  family(name: string, type: MetricType, help: string): this {
    this.#name = name;
    const shown = this.#format === "openmetrics" && type === "counter" ? name.slice(0, -"_total".length) : name;
    this.#text += `# HELP ${shown} ${escapeHelp(help)}\n# TYPE ${shown} ${type}\n`;
    return this;
  }

  /** Writes a sample. `labels` comes from `labelText`, or is empty. */
  sample(labels: string, value: number): this {
    this.#text +=
      labels === "" ? `${this.#name} ${numberText(value)}\n` : `${this.#name}{${labels}} ${numberText(value)}\n`;
    return this;
  }

  /** Writes a metric with one value. */
  gauge(name: string, help: string, value: number): this {
    return this.family(name, "gauge", help).sample("", value);
  }

  counter(name: string, help: string, value: number): this {
    return this.family(name, "counter", help).sample("", value);
  }

  /** Writes lines that are already in the text format, such as those of `Histogram`. */
  lines(text: string): void {
    this.#text += text;
  }

  end(): string {
    return this.#format === "openmetrics" ? `${this.#text}# EOF\n` : this.#text;
  }
}

export function labelText(labels: Readonly<Record<string, string>>): string {
  let text = "";
  for (const name in labels) text += `${text === "" ? "" : ","}${name}="${escapeValue(labels[name] ?? "")}"`;
  return text;
}

export function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
