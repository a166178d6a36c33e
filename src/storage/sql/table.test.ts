// The conversion of a record to a row and back, for either database.
import { describe, expect, test } from "bun:test";
import { flag, integer, json, named, table, text, words } from "./table.ts";

interface Machine {
  id: string;
  lastName: string | null;
  startedAt: number;
  endedAt: number | null;
  isOn: boolean;
  isKnown: boolean | null;
  scopes: readonly string[];
  settings: { amount?: number | null };
}

const machines = table<Machine>({
  id: text,
  lastName: text,
  startedAt: integer,
  endedAt: integer,
  isOn: named("switched_on", flag),
  isKnown: flag,
  scopes: words,
  settings: json,
});

const machine: Machine = {
  id: "m1",
  lastName: null,
  startedAt: 9_007_199_254_740_991,
  endedAt: null,
  isOn: false,
  isKnown: null,
  scopes: [],
  settings: { amount: null },
};

const row = {
  id: "m1",
  last_name: null,
  started_at: 9_007_199_254_740_991,
  ended_at: null,
  switched_on: 0,
  is_known: null,
  scopes: "",
  settings: '{"amount":null}',
};

describe("a table", () => {
  test("writes each member into its own or its named column, and nothing else", () => {
    expect(machines.row({ ...machine, other: 1 } as Machine)).toEqual(row);
    expect(machines.list).toBe(Object.keys(row).join(", "));
  });

  test("reads a record from a row, large integers as numbers or text, and ignores other columns", () => {
    expect(machines.record({ ...row, other: 1 })).toEqual(machine);
    expect(machines.record({ ...row, started_at: "9007199254740991" })).toEqual(machine);
  });

  test("reads back any written record", () => {
    const full = { ...machine, lastName: "é '", endedAt: 0, isOn: true, isKnown: false, scopes: ["a", "b"] };
    expect(machines.record(machines.row(full))).toEqual(full);
  });

  test("writes only the columns of given members for an update", () => {
    expect(machines.part(machine, "isOn", "endedAt")).toEqual({ ended_at: null, switched_on: 0 });
  });

  test("returns the first record of some rows, or undefined without rows", async () => {
    expect(await machines.first(Promise.resolve([row, row]))).toEqual(machine);
    expect(await machines.first(Promise.resolve([]))).toBeUndefined();
    expect(await machines.all(Promise.resolve([row, row]))).toEqual([machine, machine]);
  });
});
