// Rows by id are found again whatever came and went, whatever form their ids have, and no two ids have the same.
import { expect, test } from "bun:test";
import { IdRows } from "./id-rows.ts";
import { noRow } from "./word-table.ts";

const prefix = "key:key_";

test("finds each added id at its row, and no other, in any form", () => {
  let state = 7;
  const below = (count: number) => {
    state = (state * 48271) % 2147483647;
    return state % count;
  };
  const uuids = Array.from({ length: 1_500 }, () => `${prefix}${Bun.randomUUIDv7()}`);
  const others = Array.from({ length: 500 }, (_, n) => `account:${n}`);
  const ids = [...uuids, ...others];
  const rows = new IdRows(prefix);
  const expected = new Map<string, number>();
  const given = new Set<number>();
  let most = 0;
  for (let step = 0; step < 30_000; step++) {
    const id = ids[below(ids.length)] as string;
    const known = expected.get(id);
    expect(rows.find(id)).toBe(known ?? noRow);
    if (known === undefined) {
      const row = rows.add(id);
      expect(given.has(row)).toBe(false);
      given.add(row);
      expected.set(id, row);
    } else if (below(3) > 0) {
      rows.remove(known);
      given.delete(known);
      expected.delete(id);
    }
    most = Math.max(most, expected.size);
    expect(rows.size).toBe(expected.size);
    // Rows that are free are given again before there are more.
    expect(rows.end).toBe(most);
  }
});

test("distinguishes ids that differ only in the form of their UUID", () => {
  const uuid = "0198a1b2-c3d4-7e5f-8a9b-abcdefabcdef";
  const alike = [
    uuid,
    uuid.toUpperCase(),
    uuid.replaceAll("-", "_"),
    uuid.replace("0198", "198"),
    uuid.replace("a1b2", "a1bg"),
    uuid.replace("a1b2", "a1b\u00e4"),
    `0${uuid}`,
    `${uuid} `,
    "",
  ];
  const rows = new IdRows(prefix);
  const given = alike.flatMap((text) => [rows.add(`${prefix}${text}`), rows.add(`mbr:mbr_${text}`)]);
  expect(new Set(given).size).toBe(2 * alike.length);
  expect(alike.flatMap((text) => [rows.find(`${prefix}${text}`), rows.find(`mbr:mbr_${text}`)])).toEqual(given);
});
