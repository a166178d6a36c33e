// What counts as a difference between a guide and what was printed.
import { expect, test } from "bun:test";
import { faultsOfTranscript, faultsOfValue } from "./shapes.ts";

test("reports a changed word, column or field in a transcript, but not other values or row names", () => {
  const shown = '$ headrace usage\nKEY       COST  ERRORS\nci (1P8g)  $1       0\n\nKey "ci" ends in 30 days.';
  const fine = 'KEY       COST  ERRORS\nops (aaaa)  $2       7\n\nKey "ops" ends in 1 day.';
  expect(faultsOfTranscript(shown, [fine])).toEqual([]);
  for (const soon of ["45 h", "3 min", "2 days"])
    expect(faultsOfTranscript(shown, [fine.replace("1 day", soon)])).toEqual([]);
  for (const [from, to] of [
    ["ERRORS", "FAULTS"],
    ["       7", ""],
    ["ends", "expires"],
  ] as const) {
    expect(faultsOfTranscript(shown, [fine.replace(from, to)]).length, from).toBe(2);
  }
  expect(faultsOfTranscript(shown, [`${fine}\nAnd more.`])).toEqual(["not shown: And more."]);
  expect(faultsOfTranscript(`${shown}\n…`, [`${fine}\nAnd more.`])).toEqual([]);
  expect(faultsOfValue({ a: 1, b: [{ c: "x" }] }, { a: 2, b: [{ c: 1, d: 1 }], e: 1 })).toEqual([
    ...["it.b[0].c is of another kind", "it.b[0].d is not shown", "it.e is not shown"],
  ]);
});
