// Lines of a head that are reused in the buffer from the head before never change a head.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerFields } from "../message.ts";
import { type AnswerConnection, type AnswerFraming, putHead, scratch } from "./outgoing.ts";

/** Returns the expected head, without the date's value. */
function headOf(status: number, fields: AnswerFields, framing: AnswerFraming, connection: AnswerConnection): string {
  const lines = [
    connection === "upgrade" ? "HTTP/1.1 101 Switching Protocols" : `HTTP/1.1 ${status} ${phrases[status]}`,
  ];
  for (const name in fields) if (!own.has(name) && fields[name] !== undefined) lines.push(`${name}: ${fields[name]}`);
  lines.push("date");
  if (framing === "chunked") lines.push("transfer-encoding: chunked");
  else if (typeof framing === "number") lines.push(`content-length: ${framing}`);
  if (connection !== "keep") lines.push(`connection: ${connection === "keep_1.0" ? "keep-alive" : connection}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function undated(end: number): string {
  return scratch.toString("latin1", 0, end).replace(/\r\ndate: [^\r]*GMT\r/, "\r\ndate\r");
}

const phrases: Readonly<Record<number, string>> = { 200: "OK", 404: "Not Found", 503: "Service Unavailable" };
const own = new Set(["content-length", "date"]);

const name = fc.constantFrom("content-type", "x-request-id", "x-a", "content-length", "date");
const text = fc.constantFrom("", "a", "b", "text/plain", "99", "of another length", "req_1", "req_2");
const number = fc.oneof(fc.constantFrom(-0, 7, 99, 2 ** 31, -1, 1.5, 1e21), fc.nat());
const value = fc.oneof(text, number, fc.constant(undefined));
const head = fc.record({
  status: fc.constantFrom(200, 404, 503),
  fields: fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true }),
  framing: fc.constantFrom<AnswerFraming>(0, 7, 12, 99, "chunked", "close", "none"),
  connection: fc.constantFrom<AnswerConnection>("keep", "keep", "keep_1.0", "close", "upgrade"),
  body: fc.constantFrom("", "a body behind it"),
  fault: fc.constantFrom(undefined, undefined, undefined, "name", "value", "length"),
});

describe("the head of an answer", () => {
  test("writes the head by its fields only, after any other heads, bodies and faults", () => {
    const answers = fc.array(head, { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(answers, (each) => {
        for (const { status, fields, framing, connection, body, fault } of each) {
          if (fault) expect(() => putHead(status, { ...fields, ...faulty[fault] }, framing, connection)).toThrow();
          const end = putHead(status, fields, framing, connection);
          expect(undated(end)).toBe(headOf(status, fields, framing, connection));
          scratch.write(body, end);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("reuses no head line that a body has overwritten", () => {
    const dateLength = "date: Thu, 01 Jan 1970 00:00:00 GMT".length;
    const fields = { "x-a": "a".repeat(dateLength - 5), "x-b": "b".repeat("connection: close\r\n".length - 5) };
    const first = undated(putHead(200, fields, 1, "keep"));
    scratch.write("a body ".repeat(9), putHead(200, {}, "none", "close"));
    expect(undated(putHead(200, fields, 1, "keep"))).toBe(first);
  });

  test("reuses no line of a head that was refused halfway", () => {
    const [start, rest] = ["x".repeat(20), { "x-b": "1" }];
    putHead(200, { "x-a": start, ...rest }, 1, "keep");
    expect(() => putHead(200, { "x-a": `${"y".repeat(19)}\n`, ...rest }, 1, "keep")).toThrow(TypeError);
    const end = putHead(200, { "x-a": start, ...rest }, 1, "keep");
    expect(scratch.toString("latin1", 0, end)).toContain(`\r\nx-a: ${start}\r\nx-b: 1\r\n`);
  });
});

const faulty: Readonly<Record<"name" | "value" | "length", AnswerFields>> = {
  name: { "a b": "" },
  value: { "x-a": "line\nbreak" },
  length: { "x-a": "x".repeat(scratch.length) },
};
