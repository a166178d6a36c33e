// Forms parse the same however their bytes are split. Forms that parsers read differently are refused.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MultipartReader, maxHeadBytes } from "./multipart.ts";
import type { PartHead } from "./part-head.ts";

interface Part extends PartHead {
  from: number;
  to: number;
  content: Buffer;
}

function read(bytes: Buffer, cuts: readonly number[] = [], boundary = "b"): Part[] {
  const parts: Part[] = [];
  const reader = new MultipartReader(boundary, {
    part: (head, from) => void parts.push({ ...head, from, to: -1, content: Buffer.alloc(0) }),
    content(piece, start, end) {
      const part = parts.at(-1) as Part;
      part.content = Buffer.concat([part.content, piece.subarray(start, end)]);
    },
    partEnd(at) {
      (parts.at(-1) as Part).to = at;
    },
  });
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    reader.push(bytes.subarray(from, cut));
    from = Math.max(from, cut);
  }
  reader.end();
  return parts;
}

const part = (head: string, content = "x") => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const named = 'Content-Disposition: form-data; name="a"';
const form = (...parts: readonly string[]) => Buffer.from(`${parts.join("")}--b--\r\n`);

/** Fragments of boundaries, so that generated contents come close to a boundary. */
const content = fc
  .array(fc.constantFrom("\r", "\n", "\r\n", "-", "--", "b", "\r\n--", "\r\n--a", "\r\n-", "x", "é", " "), {
    maxLength: 20,
  })
  .map((pieces) => pieces.join(""))
  .filter((text) => !/[\r\n]--b/.test(`\r\n${text}\r\n`));

// hardening: F38
test("returns parts of any content at their offsets, however the form is split", () => {
  const parts = fc.array(fc.record({ name: fc.constantFrom("a", "b[]", "c.d-e[f]"), content, isFile: fc.boolean() }), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(parts, fc.array(fc.nat(400), { maxLength: 20 }), (given, places) => {
      const bytes = form(
        ...given.map(({ name, content: text, isFile }) =>
          part(`Content-Disposition: form-data; name="${name}"${isFile ? '; filename="f"' : ""}`, text),
        ),
      );
      const cuts = places.filter((place) => place < bytes.length).sort((a, b) => a - b);
      const found = read(bytes, cuts);
      expect(found.map((one) => [one.name, one.filename !== undefined, one.content.toString()])).toEqual(
        given.map((one) => [one.name, one.isFile, one.content]),
      );
      for (const { from, to, content: text } of found) expect(bytes.subarray(from, to).equals(text)).toBe(true);
    }),
    { numRuns: 400 },
  );
});

test("reads the same fields from an accepted form as the runtime", async () => {
  const bytes = form(
    part(named, "one"),
    part('content-disposition:form-data; name="b"; filename="é.wav"\r\ncontent-type: audio/wav', "two"),
  );
  const type = { "content-type": "multipart/form-data; boundary=b" };
  const others = await new Response(new Uint8Array(bytes), { headers: type }).formData();
  const [one, two] = read(bytes);
  expect([one?.name, one?.content.toString()]).toEqual(["a", String(others.get("a"))]);
  const file = others.getAll("b")[0] as File;
  expect([two?.filename, two?.contentType]).toEqual([file.name, "audio/wav"]);
  expect(two?.content.toString()).toBe(await file.text());
});

test.each(["\r\n", "\r\n\r\n"])("reads a form with %j before its first boundary, whole and byte by byte", (before) => {
  const bytes = Buffer.from(`${before}${form(part(named, "one"))}`);
  const every = Array.from(bytes, (_byte, i) => i);
  for (const cuts of [[], every]) {
    const found = read(bytes, cuts);
    expect(found.map(({ from, to }) => bytes.toString("utf8", from, to))).toEqual(["one"]);
  }
});

describe("malformed forms", () => {
  test.each([
    ["a form of nothing", "", "does not begin"],
    ["one that begins with something else", "x\r\n--b--", "does not begin"],
    ["one that begins with a lone line feed", "\n--b--", "does not begin"],
    ["one that begins with a lone carriage return", "\r--b--", "does not begin"],
    ["one with text before its first boundary", "\r\nx\r\n--b--", "does not begin"],
    ["one with nothing but an empty line", "\r\n", "does not begin"],
    ["a boundary with more behind it", `--b x\r\n${named}\r\n\r\nx\r\n--b--`, "more behind a boundary"],
    ["a boundary that begins a line of a part", `${part(named, "x\r\n--bc")}--b--`, "more behind a boundary"],
    ["a boundary that begins a part", `${part(named, `--b\r\n${named}\r\n\r\nx`)}--b--`, "beginning of a line"],
    ["a last boundary that begins a part", part(named, "--b--"), "beginning of a line"],
    ["a boundary behind a lone line feed", `${part(named, "x\n--b\r\ny")}--b--`, "beginning of a line"],
    ["a boundary behind a lone carriage return", `${part(named, "x\r--b\r\ny")}--b--`, "beginning of a line"],
    ["a part that does not end", `--b\r\n${named}\r\n\r\nx`, "before its last boundary"],
    ["a head that does not end", `--b\r\n${named}\r\n`, "before its last boundary"],
    ["a head without a colon", `${part(`${named}\r\nx`)}--b--`, "headers"],
    ["a folded head", `${part('Content-Disposition: form-data;\r\n name="a"')}--b--`, "headers"],
    ["a header twice", `${part(`${named}\r\n${named}`)}--b--`, "twice"],
    ["a name twice", `${part(`${named}; name="b"`)}--b--`, "name twice"],
    ["an escaped name", `${part('Content-Disposition: form-data; name="a\\"b"')}--b--`, "differ"],
    ["a name of RFC 5987", `${part(`${named}; name*=utf-8''b`)}--b--`, "differ"],
    // Python's `email`, with which Starlette parses forms, takes each of the next three for a part with the name
    // `model`.
    ["a name in two of RFC 2231", `${part(`${named}; name*0=mo; name*1=del`)}--b--`, "differ"],
    ["a name in angle brackets", `${part("Content-Disposition: form-data; name=<model>")}--b--`, "differ"],
    ["a name in a quote", `${part(`${named}; filename="\\\\"; x="; name=model; y="`)}--b--`, "differ"],
    ["a name with a blank", `${part('Content-Disposition: form-data; name="model "')}--b--`, "differ"],
    ["a name in percents", `${part('Content-Disposition: form-data; name="%6dodel"')}--b--`, "differ"],
    ["no name", `${part("Content-Disposition: form-data")}--b--`, "no name"],
    ["no disposition", `${part("Content-Type: text/plain")}--b--`, "no header Content-Disposition"],
    ["another disposition", `${part('Content-Disposition: attachment; name="a"')}--b--`, "not form-data"],
    ["quoted-printable", `${part(`${named}\r\nContent-Transfer-Encoding: quoted-printable`)}--b--`, "binary"],
    ["a control character", `${part(`${named}\r\nx: a\0b`)}--b--`, "headers"],
    ["a lone line feed", `${part(`${named}\nx: b`)}--b--`, "headers"],
    ["a head that is too long", `${part(`${named}\r\nx: ${"y".repeat(maxHeadBytes)}`)}--b--`, "longer than"],
    ["something behind the end", `${part(named)}--b--\r\n${part(named)}`, "behind its last"],
  ])("refuses %s, whole and byte by byte", (_, text, words) => {
    const bytes = Buffer.from(text);
    expect(() => read(bytes)).toThrow(words);
    expect(() =>
      read(
        bytes,
        Array.from(bytes, (_byte, i) => i),
      ),
    ).toThrow(words);
  });
});
