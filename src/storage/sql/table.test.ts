// A record and its row, as either database gives it back.
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
  test("a table writes each member into the column of its name or of the one that is told, and nothing else", () => {
    expect(machines.row({ ...machine, other: 1 } as Machine)).toEqual(row);
    expect(machines.list).toBe(Object.keys(row).join(", "));
  });

  test("a table reads a record out of a row, with large integers as numbers and as text, and leaves out what else is in it", () => {
    expect(machines.record({ ...row, other: 1 })).toEqual(machine);
    expect(machines.record({ ...row, started_at: "9007199254740991" })).toEqual(machine);
  });

  test("a table gives back what was written, whatever it is", () => {
    const full = { ...machine, lastName: "é '", endedAt: 0, isOn: true, isKnown: false, scopes: ["a", "b"] };
    expect(machines.record(machines.row(full))).toEqual(full);
  });

  test("a table writes the columns of some members alone for an update", () => {
    expect(machines.part(machine, "isOn", "endedAt")).toEqual({ ended_at: null, switched_on: 0 });
  });

  test("a table gives the first record of some rows, undefined where there are none", async () => {
    expect(await machines.first(Promise.resolve([row, row]))).toEqual(machine);
    expect(await machines.first(Promise.resolve([]))).toBeUndefined();
    expect(await machines.all(Promise.resolve([row, row]))).toEqual([machine, machine]);
  });
});
