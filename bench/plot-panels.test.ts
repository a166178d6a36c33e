import { expect, test } from "bun:test";
import { barPanel } from "./plot-panels.ts";

test("prints a negative figure beside the axis within the plot", () => {
  const value = { median: -71.4, least: -71.4, most: -71.4 };
  const panel = barPanel("KB a stream", "KB", [
    { title: "9,000", value: { median: 18, least: 18, most: 18 }, colour: 0 },
    { title: "1,000", value, colour: 1 },
  ]);
  const [, x] = /x="(-?[\d.]+)"[^>]*>-71\.4</.exec(panel) ?? [];
  const [, axis] = /class="axis" x1="([\d.]+)"/.exec(panel) ?? [];
  expect(Number(x)).toBe(Number(axis) + 6);
});
