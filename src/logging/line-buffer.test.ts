// Lines as bytes: the same as text would be, whatever their fields hold and wherever the buffer ends.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { LineBuffer } from "./line-buffer.ts";

function gathered(size?: number) {
  const written: string[] = [];
  const lines = new LineBuffer((bytes) => void written.push(Buffer.from(bytes).toString()), size);
  return { lines, written };
}

test.each([undefined, 1_000, 200, 0])("writes a line like JSON.stringify with a buffer of %p bytes", (size) => {
  const { lines, written } = gathered(size);
  const expected: string[] = [];
  const values = [
    ...[
      "a\nb",
      "a\r\nb",
      'a" b="x',
      "a b=c",
      "\u2028",
      "\u0085",
      "\u001b[31mred",
      "\u007f",
      "\u0000",
      '{"time":"forged"}',
      "",
    ],
    "\ud800",
    "😀",
    "é",
    0,
    -0,
    1.5,
    1e21,
    1e-7,
    Number.NaN,
    1 / 0,
  ];
  const odd = [...values, true, false, null, undefined];
  const names = ["id", "two words", 'a"b', "ms", "\u2028", "time", "level", "event"];
  const time = "2026-11-20T22:00:00.000Z";
  for (const [index, name] of names.entries()) {
    for (const value of odd) {
      const fields = { [name]: value, [names[(index + 1) % names.length] ?? ""]: 1, last: value };
      const event = typeof value === "string" ? value : "e";
      lines.putJson(time, "warn", event, fields);
      expected.push(JSON.stringify({ time, level: "warn", event, ...fields }));
    }
  }
  for (const fields of [{}, { a: undefined }, { a: 1 }]) {
    lines.putJson(time, "info", "e", fields);
    expected.push(JSON.stringify({ time, level: "info", event: "e", ...fields }));
  }
  lines.flush();
  expect(written.join("").split("\n").slice(0, -1)).toEqual(expected);
});

test("writes non-ASCII lines completely wherever the buffer ends", () => {
  for (let length = 0; length < 120; length++) {
    const { lines, written } = gathered(1_000);
    const fields = [
      { text: "€".repeat(length) },
      { text: "😀é".repeat(length) },
      { text: "x" },
      { text: "語".repeat(200) },
    ];
    for (const own of fields) lines.putJson("t", "info", "e", own);
    lines.flush();
    const expected = fields.map((own) => `${JSON.stringify({ time: "t", level: "info", event: "e", ...own })}\n`);
    expect(written.join("")).toBe(expected.join(""));
  }
});

test("writes each line with its own time, level and event", () => {
  const { lines, written } = gathered();
  const expected: string[] = [];
  for (const time of ["t1", "t1", "t2"]) {
    for (const level of ["info", "error", "error"] as const) {
      for (const event of ["a", "b", "b", "a"]) {
        const fields = { n: expected.length };
        lines.putJson(time, level, event, fields);
        expected.push(JSON.stringify({ time, level, event, ...fields }));
      }
    }
  }
  lines.flush();
  expect(written.join("").split("\n").slice(0, -1)).toEqual(expected);
});

test("writes lines in order and completely, even longer than the buffer", () => {
  const { lines, written } = gathered(100);
  const texts = ["a\n", "b".repeat(30), "\u20ac\n", "c".repeat(200), "\n", "d\n"];
  for (const text of texts) lines.put(text);
  lines.flush();
  lines.flush();
  expect(written.join("")).toBe(texts.join(""));
  expect(written.every((piece) => piece !== "")).toBe(true);
});

test("writes whole lines to a standard output that is not read for a while", async () => {
  const source = `
    import { StreamLog } from ${JSON.stringify(join(import.meta.dir, "./logging.ts"))};
    const log = new StreamLog("json");
    for (let turn = 0; turn < 40; turn++) {
      for (let line = 0; line < 200; line++) log.info("e", { at: turn * 200 + line, text: "x".repeat(100) });
      log.flush();
    }`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe" });
  // Its pipe is full by then.
  await Bun.sleep(300);
  const lines = (await new Response(child.stdout).text()).split("\n").slice(0, -1);
  expect(lines.map((line) => JSON.parse(line).at)).toEqual(Array.from({ length: 8_000 }, (_, at) => at));
});
