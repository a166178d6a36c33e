import { expect, test } from "bun:test";
import { ResponseError, ResponseReader } from "./response-reader.ts";

const counted = 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"a":"b\\n"}';
const chunked =
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
  "9\r\ndata: 1\n\n\r\n9\r\ndata: 22\n\r\n1\r\n\n\r\nE\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

for (const [name, text, events, tail] of [
  ["a counted body", counted, 0, '{"a":"b\\n"}'],
  ["a chunked stream of events", chunked, 3, "data: 1\n\ndata: 22\n\ndata: [DONE]\n\n"],
] as const) {
  test(`reads ${name} the same wherever the response is cut`, () => {
    const bytes = Buffer.from(text);
    for (let cut = 1; cut < bytes.length; cut++) {
      const reader = new ResponseReader();
      expect(reader.push(bytes.subarray(0, cut))).toBe(false);
      expect(reader.push(bytes.subarray(cut))).toBe(true);
      expect([reader.status, reader.events, reader.tail]).toEqual([200, events, tail]);
    }
  });
}

test("reads the next response on the same connection from a clean state", () => {
  const reader = new ResponseReader();
  expect(reader.push(Buffer.from(chunked))).toBe(true);
  expect(reader.push(Buffer.from("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))).toBe(true);
  expect([reader.status, reader.events, reader.tail]).toEqual([503, 0, ""]);
  expect(reader.eventsInAll).toBe(3);
});

test("does not count three line ends in a row as two events", () => {
  const reader = new ResponseReader();
  reader.push(Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na\n\n\nb"));
  expect(reader.events).toBe(1);
});

test.each([
  ["no HTTP", "SSH-2.0\r\n\r\n"],
  ["no length", "HTTP/1.1 200 OK\r\n\r\n"],
  ["bytes behind the end", `${counted}x`],
  ["a malformed chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"],
])("refuses a response with %s", (_, text) => {
  expect(() => new ResponseReader().push(Buffer.from(text))).toThrow(ResponseError);
});
