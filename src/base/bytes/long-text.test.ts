import { expect, test } from "bun:test";
import { LongText } from "./long-text.ts";

const piece = "0123456789".repeat(1_000);

test("joins the pieces of a text of any length", () => {
  for (const count of [0, 1, 20, 60, 300]) {
    const text = new LongText("first");
    for (let i = 0; i < count; i++) text.add(`${piece}\xff`);
    expect(text.length).toBe(5 + count * (piece.length + 1));
    expect(text.take()).toBe(`first${`${piece}\xff`.repeat(count)}`);
    expect(text.length).toBe(0);
  }
});

test("finds a final CR wherever the end of the text is stored", () => {
  const text = new LongText("\r");
  expect(text.endsInCr).toBeTrue();
  text.add("x".repeat(300_000));
  expect(text.endsInCr).toBeFalse();
  text.add(`${"x".repeat(300_000)}\r`);
  expect(text.endsInCr).toBeTrue();
  text.drop();
  expect([text.length, text.take()]).toEqual([0, ""]);
});
