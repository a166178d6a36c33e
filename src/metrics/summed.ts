// Adds up the metrics of several processes of the same server, each in Prometheus' text format.

/** A metric: its HELP and TYPE lines, and the value of each sample by name and labels. */
interface Family {
  head: string;
  samples: Map<string, number>;
}

const endLine = "# EOF\n";

/**
 * Returns the text `of` with the samples of the other texts added. Samples and metrics that occur only in other texts
 * are appended.
 */
export function summed(of: string, others: readonly string[]): string {
  if (others.length === 0) return of;
  const families = familiesOf(of);
  for (const other of others) {
    for (const [name, { head, samples }] of familiesOf(other)) {
      const known = families.get(name);
      if (!known) {
        families.set(name, { head, samples });
        continue;
      }
      for (const [sample, value] of samples) known.samples.set(sample, (known.samples.get(sample) ?? 0) + value);
    }
  }
  let text = "";
  for (const { head, samples } of families.values()) {
    text += head;
    for (const [sample, value] of samples) text += `${sample} ${value}\n`;
  }
  return of.endsWith(endLine) ? text + endLine : text;
}

/** Returns the metrics without gauges, because only counters stay valid after a process has ended. */
export function countersOf(text: string): string {
  let counters = "";
  for (const { head, samples } of familiesOf(text).values()) {
    if (head.endsWith(" gauge\n")) continue;
    counters += head;
    for (const [sample, value] of samples) counters += `${sample} ${value}\n`;
  }
  return counters;
}

/** Returns the value of a sample without labels; 0 if there is none. */
export function sampleIn(text: string, name: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length));
}

/** Returns metrics by the name in their TYPE line, without `_total`, which OpenMetrics omits there. */
function familiesOf(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let head = "";
  let family: Family = { head: "", samples: new Map() };
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) head = `${line}\n`;
    else if (line.startsWith("# TYPE ")) {
      family = { head: `${head}${line}\n`, samples: new Map() };
      families.set((line.split(" ")[2] ?? "").replace(/_total$/, ""), family);
    } else if (line !== "" && !line.startsWith("#")) {
      const end = line.lastIndexOf(" ");
      family.samples.set(line.slice(0, end), Number(line.slice(end + 1)));
    }
  }
  return families;
}
