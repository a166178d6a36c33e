// Histograms of durations. They only increment numbers, because every request is counted.

/** The upper bounds of a histogram's buckets. Several histograms may share them. */
export class Buckets {
  readonly boundsMs: Float64Array;
  /** The label `le` of each bucket: its bound in seconds, the last one `+Inf`. */
  readonly texts: readonly string[];

  constructor(seconds: readonly number[]) {
    this.boundsMs = Float64Array.from(seconds, (bound) => bound * 1000);
    // Write bounds as floats, as OpenMetrics requires, so that both formats have the same series.
    const texts = seconds.map((bound) => (Number.isInteger(bound) ? `${bound}.0` : String(bound)));
    this.texts = [...texts, "+Inf"].map((bound) => `le="${bound}"} `);
  }
}

export class Histogram {
  readonly #buckets: Buckets;
  readonly #counts: Float64Array;
  #sumMs = 0;
  #count = 0;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.boundsMs.length + 1);
  }

  get count(): number {
    return this.#count;
  }

  observe(ms: number): void {
    const { boundsMs } = this.#buckets;
    let bucket = 0;
    while (bucket < boundsMs.length && ms > (boundsMs[bucket] as number)) bucket++;
    (this.#counts[bucket] as number)++;
    this.#sumMs += ms;
    this.#count++;
  }

  /** Returns the samples as text, in seconds. `labels` comes from `labelText`. */
  lines(name: string, labels: string): string {
    const start = labels === "" ? `${name}_bucket{` : `${name}_bucket{${labels},`;
    const { texts } = this.#buckets;
    let text = "";
    let count = 0;
    for (let bucket = 0; bucket < texts.length; bucket++) {
      count += this.#counts[bucket] as number;
      text += `${start}${texts[bucket]}${count}\n`;
    }
    const end = labels === "" ? "" : `{${labels}}`;
    return `${text}${name}_sum${end} ${this.#sumMs / 1000}\n${name}_count${end} ${count}\n`;
  }
}
