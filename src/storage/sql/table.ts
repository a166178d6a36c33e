// A table's columns, each written once: from them follow the row that a statement takes and the record that a row says.

/** What both databases take. Whether a value of a row is a number or text depends on the database: `Column.read` evens it out. */
type Value = string | number | null;
type Row = Record<string, Value>;

/** How a member of a record, a `Member`, stands in its column. */
export interface Column<in Member> {
  /** Name in the database; the member's in snake case where nothing else is said. */
  readonly name?: string;
  readonly write: (member: Member) => Value;
  readonly read: (value: unknown) => unknown;
}

/** A text as it is, or null. */
export const text: Column<string | null> = { write: (member) => member, read: (value) => value };

/** A number, or null. PostgreSQL gives its large integers as text. */
export const integer: Column<number | null> = {
  write: (member) => member,
  read: (value) => (value === null ? null : Number(value)),
};

/** A boolean as 0 or 1, or null. */
export const flag: Column<boolean | null> = {
  write: (member) => (member === null ? null : Number(member)),
  read: (value) => (value === null ? null : Number(value) !== 0),
};

/** Words with a space between them; none of them has one. */
export const words: Column<readonly string[]> = {
  write: (member) => member.join(" "),
  read: (value) => (value === "" ? [] : String(value).split(" ")),
};

/** A member that is undefined is not in the row, and none of what is read. */
export const json: Column<unknown> = {
  write: (member) => JSON.stringify(member),
  read: (value) => JSON.parse(String(value)),
};

/** A list as JSON; one that is undefined is empty. */
export const jsonList: Column<readonly unknown[] | undefined> = {
  write: (member) => JSON.stringify(member ?? []),
  read: json.read,
};

/** A column whose name does not follow from the member's. */
export function named<Member>(name: string, column: Column<Member>): Column<Member> {
  return { ...column, name };
}

/** A member for each column. */
type Columns<Entry> = { readonly [Name in keyof Entry]-?: Column<Entry[Name]> };

export interface Table<Entry> {
  /** To be spread where a table or a query has these columns and others. */
  readonly columns: Columns<Entry>;
  /** Their names, for a statement. */
  readonly list: string;
  /** The row with all columns; what else the record has is left out. */
  row(record: Entry): Row;
  /** The columns of some members, for an update. */
  part(record: Entry, ...members: (keyof Entry & string)[]): Row;
  /** The record that a row says; what else the row has is left out. */
  record(row: object): Entry;
  /** The record of the first row. */
  first(rows: PromiseLike<readonly object[]>): Promise<Entry | undefined>;
  all(rows: PromiseLike<readonly object[]>): Promise<Entry[]>;
}

/** The functions need no `this`. */
export function table<Entry extends object>(columns: Columns<Entry>): Table<Entry> {
  const described = Object.entries(columns as Record<string, Column<unknown>>).map(
    ([member, { name, write, read }]) => {
      return { member, name: name ?? snakeCase(member), write, read };
    },
  );
  const rowOf = (record: Entry, some: typeof described): Row => {
    const members = record as Record<string, unknown>;
    const row: Row = {};
    for (const { member, name, write } of some) row[name] = write(members[member]);
    return row;
  };
  const recordOf = (row: object): Entry => {
    const values = row as Record<string, unknown>;
    const record: Record<string, unknown> = {};
    for (const { member, name, read } of described) record[member] = read(values[name]);
    return record as Entry;
  };
  return {
    columns,
    list: described.map(({ name }) => name).join(", "),
    row: (record) => rowOf(record, described),
    part: (record, ...members) =>
      rowOf(
        record,
        described.filter(({ member }) => members.some((one) => one === member)),
      ),
    record: recordOf,
    first: async (rows) => {
      const [row] = await rows;
      return row && recordOf(row);
    },
    all: async (rows) => (await rows).map(recordOf),
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
