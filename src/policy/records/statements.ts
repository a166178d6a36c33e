// Makes statements: reads what was used day by day, and adds it up by what is asked for, in whole nano-USD.
import type {
  Statement,
  StatementGroup,
  StatementLine,
  StatementQuery,
  StatementSums,
  UsageParties,
} from "../../domain/usage/statement.ts";
import type { UsageGroup, UsagePosition, UsageQuery, UsageReports, UsageRow } from "../../domain/usage/usage.ts";

const daySeconds = 86_400;
const pageRows = 1_000;
/** Lines that are kept apart while a month is read; all beyond is one. */
const mostLines = 100_000;

/** What of the records tells the lines of a group apart. A further one is an entry here. */
const readBy: Readonly<Record<StatementGroup, UsageGroup>> = {
  key: "key",
  // The person is that of the credential, which stays when it ends.
  person: "key",
  model: "model",
  app: "app",
  tag: "tag",
};

export interface StatementsOptions {
  reports: UsageReports;
  parties: Pick<UsageParties, "credentials">;
  /** Lines that are kept apart. */
  mostLines?: number;
}

export class Statements {
  readonly #options: StatementsOptions;

  constructor(options: StatementsOptions) {
    this.#options = options;
  }

  async read(query: StatementQuery): Promise<Statement> {
    const { groupBy, start, end } = query;
    const overlaps = groupBy.includes("tag");
    if (groupBy.length === 0) return { lines: [], others: null, total: await this.#total(query), overlaps };
    const groups = [...new Set(groupBy.map((group) => readBy[group]))];
    const sums = new Lines(this.#options.mostLines ?? mostLines);
    // A day at a time: each query reads a part of the month, and other work has room between them.
    for (let day = start; day < end; day += daySeconds) {
      const ofDay = {
        ...this.#partOf(query),
        start: day,
        end: day + daySeconds,
        bucket: "day",
        groupBy: groups,
      } as const;
      for await (const row of this.#rows(ofDay))
        sums.add(
          groups.map((group) => row.groups[group] ?? null),
          row,
        );
    }
    const { lines, others } = await this.#named(query, groups, sums);
    const total = overlaps ? await this.#total(query) : addedUp(others === null ? lines : [...lines, others]);
    return { lines: lines.sort(mostFirst), others, total, overlaps };
  }

  async #total(query: StatementQuery): Promise<StatementSums> {
    const { start, end } = query;
    const total = noSums();
    const whole: UsageQuery = { ...this.#partOf(query), start, end, bucket: "month", groupBy: [] };
    for await (const row of this.#rows(whole)) addRow(total, row);
    return total;
  }

  #partOf({ accountId, environment, keyId, appId, personId, tag }: StatementQuery) {
    return {
      ...{ accountId, environment },
      ...(keyId === undefined ? {} : { keyId }),
      ...(appId === undefined ? {} : { appId }),
      ...(personId === undefined ? {} : { personId }),
      ...(tag === undefined ? {} : { tag }),
    };
  }

  async *#rows(query: UsageQuery): AsyncGenerator<UsageRow> {
    let after: UsagePosition | undefined;
    for (;;) {
      await new Promise(setImmediate);
      const rows = await this.#options.reports.report(query, { after, limit: pageRows });
      yield* rows;
      if (rows.length < pageRows) return;
      after = rows.at(-1);
    }
  }

  /** Lines by what was asked for, where that is not what was read. */
  async #named(
    { accountId, groupBy }: StatementQuery,
    groups: readonly UsageGroup[],
    sums: Lines,
  ): Promise<{ lines: StatementLine[]; others: StatementSums | null }> {
    const at = (group: UsageGroup) => groups.indexOf(group);
    const keyIds = groupBy.includes("person") ? sums.valuesAt(at("key")) : [];
    const parties = await this.#options.parties.credentials(accountId, keyIds);
    const lines = new Lines(Number.POSITIVE_INFINITY);
    for (const { values, line } of sums.all()) {
      const wanted = groupBy.map((group) => {
        const value = values[at(readBy[group])] ?? null;
        return group === "person" ? (parties.get(value ?? "")?.personId ?? null) : value;
      });
      lines.addSums(wanted, line);
    }
    return {
      lines: [...lines.all()].map(({ values, line }) => ({
        ...line,
        groups: Object.fromEntries(groupBy.map((group, i) => [group, values[i] ?? null])),
      })),
      others: sums.others,
    };
  }
}

/** Sums by the values of their groups, as many as there is room for. */
class Lines {
  readonly #most: number;
  readonly #byName = new Map<string, { values: readonly (string | null)[]; line: StatementSums }>();
  others: StatementSums | null = null;

  constructor(most: number) {
    this.#most = most;
  }

  add(values: readonly (string | null)[], row: UsageRow): void {
    addRow(this.#of(values), row);
  }

  addSums(values: readonly (string | null)[], sums: StatementSums): void {
    addSums(this.#of(values), sums);
  }

  all(): Iterable<{ values: readonly (string | null)[]; line: StatementSums }> {
    return this.#byName.values();
  }

  valuesAt(place: number): string[] {
    const values = [...this.#byName.values()].map((one) => one.values[place] ?? null);
    return [...new Set(values.filter((value) => value !== null))];
  }

  #of(values: readonly (string | null)[]): StatementSums {
    const name = JSON.stringify(values);
    const known = this.#byName.get(name);
    if (known) return known.line;
    if (this.#byName.size >= this.#most) {
      this.others ??= noSums();
      return this.others;
    }
    const line = noSums();
    this.#byName.set(name, { values, line });
    return line;
  }
}

export function noSums(): StatementSums {
  return {
    ...{ requests: 0, promptTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, completionTokens: 0, reasoningTokens: 0 },
    ...{ errors: 0, unpriced: 0, nanoUsd: 0n },
  };
}

export function addedUp(lines: readonly StatementSums[]): StatementSums {
  const total = noSums();
  for (const line of lines) addSums(total, line);
  return total;
}

function addRow(sums: StatementSums, row: UsageRow): void {
  addSums(sums, { ...row, nanoUsd: row.exactNanoUsd });
}

function addSums(sums: StatementSums, more: StatementSums): void {
  sums.requests += more.requests;
  sums.promptTokens += more.promptTokens;
  sums.cachedTokens += more.cachedTokens;
  sums.cacheWriteTokens += more.cacheWriteTokens;
  sums.completionTokens += more.completionTokens;
  sums.reasoningTokens += more.reasoningTokens;
  sums.errors += more.errors;
  sums.unpriced += more.unpriced;
  sums.nanoUsd += more.nanoUsd;
}

function mostFirst(one: StatementLine, other: StatementLine): number {
  if (one.nanoUsd !== other.nanoUsd) return one.nanoUsd > other.nanoUsd ? -1 : 1;
  if (one.requests !== other.requests) return other.requests - one.requests;
  return JSON.stringify(one.groups) < JSON.stringify(other.groups) ? -1 : 1;
}
