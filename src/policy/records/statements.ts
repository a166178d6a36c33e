// Creates statements: reads usage day by day and adds it up by the requested groups, in whole nano-USD.
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
/** Maximum separate lines while a month is read. All further usage is added to one line. */
const maxLines = 100_000;

/** The field of usage records for each group. To add a group, add an entry here. */
const readBy: Readonly<Record<StatementGroup, UsageGroup>> = {
  key: "key",
  // Usage is read by key and then assigned to the key's owner, who stays known after the key ends.
  person: "key",
  model: "model",
  app: "app",
  tag: "tag",
};

export interface StatementsOptions {
  reports: UsageReports;
  parties: Pick<UsageParties, "credentials">;
  /** Maximum separate lines. */
  maxLines?: number;
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
    const sums = new Lines(groupBy, this.#options.maxLines ?? maxLines);
    const people = groupBy.includes("person") ? new Map<string, string | null>() : undefined;
    // Read day by day: each query covers a part of the month, and other work runs in between.
    for (let day = start; day < end; day += daySeconds) {
      const ofDay = {
        ...this.#partOf(query),
        start: day,
        end: day + daySeconds,
        bucket: "day",
        groupBy: groups,
      } as const;
      for await (const rows of this.#pages(ofDay)) {
        if (people) await this.#learnPeople(query, rows, people);
        for (const row of rows) {
          const values = groupBy.map((group) => {
            const value = row.groups[readBy[group]] ?? null;
            return group === "person" ? (people?.get(value ?? "") ?? null) : value;
          });
          addRow(sums.of(values), row);
        }
      }
    }
    const { others } = sums;
    const lines = sums.mostFirst();
    const total = overlaps ? await this.#total(query) : addedUp(others === null ? lines : [...lines, others]);
    return { lines, others, total, overlaps };
  }

  async #total(query: StatementQuery): Promise<StatementSums> {
    const { start, end } = query;
    const total = noSums();
    const byDay: UsageQuery = { ...this.#partOf(query), start, end, bucket: "day", groupBy: [] };
    for await (const rows of this.#pages(byDay)) for (const row of rows) addRow(total, row);
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

  async *#pages(query: UsageQuery): AsyncGenerator<readonly UsageRow[]> {
    let after: UsagePosition | undefined;
    for (;;) {
      await new Promise(setImmediate);
      const rows = await this.#options.reports.report(query, { after, limit: pageRows });
      yield rows;
      if (rows.length < pageRows) return;
      after = rows.at(-1);
    }
  }

  /** Finds the people who own the credentials of these rows; null for credentials of the account. */
  async #learnPeople(
    { accountId, environment }: StatementQuery,
    rows: readonly UsageRow[],
    people: Map<string, string | null>,
  ): Promise<void> {
    const ids = new Set(rows.map(({ groups }) => groups.key ?? "").filter((id) => id !== "" && !people.has(id)));
    const parties = await this.#options.parties.credentials({ accountId, environment }, [...ids]);
    for (const id of ids) people.set(id, parties.get(id)?.personId ?? null);
  }
}

/** Sums by the values of their groups, up to the maximum number of lines. */
class Lines {
  readonly #groupBy: readonly StatementGroup[];
  readonly #most: number;
  readonly #byName = new Map<string, StatementLine>();
  others: StatementSums | null = null;

  constructor(groupBy: readonly StatementGroup[], most: number) {
    this.#groupBy = groupBy;
    this.#most = most;
  }

  of(values: readonly (string | null)[]): StatementSums {
    const name = JSON.stringify(values);
    const known = this.#byName.get(name);
    if (known) return known;
    if (this.#byName.size >= this.#most) {
      this.others ??= noSums();
      return this.others;
    }
    const groups = Object.fromEntries(this.#groupBy.map((group, i) => [group, values[i] ?? null]));
    const line = { ...noSums(), groups };
    this.#byName.set(name, line);
    return line;
  }

  /** Returns the most expensive lines first. Lines of equal cost are sorted by number of requests, then by name. */
  mostFirst(): StatementLine[] {
    return [...this.#byName]
      .sort(([name, one], [otherName, other]) => {
        if (one.nanoUsd !== other.nanoUsd) return one.nanoUsd > other.nanoUsd ? -1 : 1;
        if (one.requests !== other.requests) return other.requests - one.requests;
        return name < otherName ? -1 : 1;
      })
      .map(([, line]) => line);
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
