// Tests the list envelope and its paging parameters.
import { expect, test } from "bun:test";
import { z } from "zod";
import { readQuery } from "../content/query.ts";
import { listOf, pageOf, pageQuery } from "./list.ts";

const objects = (...ids: string[]) => ids.map((id) => ({ id }));

test("returns a page of the requested length with first_id, last_id and has_more", () => {
  expect(pageOf(objects("a", "b", "c"), 2)).toEqual({
    object: "list",
    data: objects("a", "b"),
    first_id: "a",
    last_id: "b",
    has_more: true,
  });
  expect(pageOf(objects("a", "b"), 2)).toMatchObject({ last_id: "b", has_more: false });
});

test("returns null ids for an empty list", () => {
  expect(pageOf([], 20)).toEqual({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
});

test("describes a page exactly in its schema", () => {
  const schema = z.strictObject(listOf(z.object({ id: z.string() }), "ThingList").shape);
  expect(schema.safeParse(pageOf(objects("a"), 1)).success).toBe(true);
  expect(schema.safeParse(pageOf([], 1)).success).toBe(true);
});

test("limits a page to 20 by default, and accepts 1 to 100", () => {
  const read = (search: string) => readQuery(z.object(pageQuery), `http://localhost/v1/things${search}`);
  expect(read("")).toEqual({ limit: 20 });
  expect(read("?limit=100&after=thing_1")).toEqual({ limit: 100, after: "thing_1" });
  for (const bad of ["0", "101", "1.5", "-1", "x", ""]) {
    expect(() => read(`?limit=${bad}`)).toThrow(/^limit: must be a whole number from 1 to 100/);
  }
  expect(() => read("?after=")).toThrow(/^after: must be the id/);
});
