import { expect, test } from "bun:test";
import { TextScanner } from "./text-scanner.ts";

/** Pushes the pieces one by one and returns the output, with markers in angle brackets. */
function scan(markers: string[], pieces: string[]): string[] {
  const scanner = new TextScanner();
  scanner.setMarkers(markers);
  const out: string[] = [];
  for (const piece of pieces) {
    scanner.push(piece, false);
    for (;;) {
      const { text, marker } = scanner.next();
      if (text !== "") out.push(text);
      if (marker === undefined) break;
      out.push(`<${marker}>`);
    }
  }
  const rest = scanner.flush();
  return rest === "" ? out : [...out, rest];
}

test("finds a marker wherever the text is split, and delivers nothing of it", () => {
  const text = "one STOP two";
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      expect(scan(["STOP"], pieces).join("")).toBe("one <STOP> two");
    }
  }
});

test("does not hold back text that cannot become a marker", () => {
  expect(scan(["STOP"], ["abc", "S", "x", "end"])).toEqual(["abc", "Sx", "end"]);
});

test("delivers the beginning of a marker at the end", () => {
  expect(scan(["STOP"], ["a ST"])).toEqual(["a ", "ST"]);
});

test("prefers the earlier of two markers, and the longer at the same position", () => {
  expect(scan(["</t>", "\n</t>"], ["a\n</t>b"])).toEqual(["a", "<\n</t>>", "b"]);
  expect(scan(["ab", "abc"], ["xabcy"])).toEqual(["x", "<abc>", "y"]);
});

test("matches control tokens in markers and never delivers their text", () => {
  const scanner = new TextScanner();
  scanner.setMarkers(["<call>{"]);
  scanner.push("a", false);
  scanner.push("<odd>", true);
  scanner.push("b", false);
  expect(scanner.next()).toEqual({ text: "ab", marker: undefined });
  scanner.push("<call>", true);
  expect(scanner.next()).toEqual({ text: "", marker: undefined });
  scanner.push("{", false);
  expect(scanner.next()).toEqual({ text: "", marker: "<call>{" });
});
