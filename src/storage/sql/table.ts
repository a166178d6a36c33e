// Columns of a table, each declared once. They convert between records and rows.

/** A value that both databases accept. `Column.read` converts a number that arrives as a text. */
type Value = string | number | null;
type Row = Record<string, Value>;

/** The conversion of a record's `Member` to and from its column. */
export interface Column<in Member> {
  /** Name in the database. Default: the member's in snake case. */
  readonly name?: string;
  readonly write: (member: Member) => Value;
  readonly read: (value: unknown) => unknown;
}

/** A text, or null. */
export const text: Column<string | null> = { write: (member) => member, read: (value) => value };

/** A number, or null. PostgreSQL returns large integers as text. */
export const integer: Column<number | null> = {
  write: (member) => member,
  read: (value) => (value === null ? null : Number(value)),
};

/** A boolean as 0 or 1, or null. */
export const flag: Column<boolean | null> = {
  write: (member) => (member === null ? null : Number(member)),
  read: (value) => (value === null ? null : Number(value) !== 0),
};

/** Words without spaces, joined by spaces. */
export const words: Column<readonly string[]> = {
  write: (member) => member.join(" "),
  read: (value) => (value === "" ? [] : String(value).split(" ")),
};

/** A value as JSON. If the member is undefined, the row lacks the column, and a read value is never undefined. */
export const json: Column<unknown> = {
  write: (member) => JSON.stringify(member),
  read: (value) => JSON.parse(String(value)),
};

/** A list as JSON. Undefined becomes an empty list. */
export const jsonList: Column<readonly unknown[] | undefined> = {
  write: (member) => JSON.stringify(member ?? []),
  read: json.read,
};

/** Gives a column its own name, instead of the member's name in snake case. */
export function named<Member>(name: string, column: Column<Member>): Column<Member> {
  return { ...column, name };
}

/** A column for each member. */
type Columns<Entry> = { readonly [Name in keyof Entry]-?: Column<Entry[Name]> };

export interface Table<Entry> {
  /** The columns, to be spread into a table or query with further columns. */
  readonly columns: Columns<Entry>;
  /** Names of the columns for a statement, separated by commas. */
  readonly list: string;
  /** Returns a row with all columns. Other members of the record are left out. */
  row(record: Entry): Row;
  /** Returns a row with the columns of some members, for an update. */
  part(record: Entry, ...members: (keyof Entry & string)[]): Row;
  /** Returns the record of a row. Other columns are left out. */
  record(row: object): Entry;
  /** Returns the record of the first row. */
  first(rows: PromiseLike<readonly object[]>): Promise<Entry | undefined>;
  all(rows: PromiseLike<readonly object[]>): Promise<Entry[]>;
}

/** Makes a table from its columns. The functions of a table need no `this`. */
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
