// What operators see of a tool's description before they approve it: what changed, by lines and words, and what nobody would see.
import { expect, test } from "bun:test";
import { partsOf } from "../../web/pages/mcp-servers/definition-parts.ts";
import { differences, type Line } from "../../web/pages/mcp-servers/differences.ts";
import { seenOf } from "../../web/parts/words/hidden-characters.ts";

/** Changed words stand in brackets. */
function shown(lines: readonly Line[]): string[] {
  const signs = { same: " ", was: "-", is: "+" };
  return lines.map(
    ({ kind, pieces }) => signs[kind] + pieces.map(({ text, isChanged }) => (isChanged ? `[${text}]` : text)).join(""),
  );
}

function side(kind: Line["kind"], lines: readonly Line[]): string {
  return lines
    .filter((line) => line.kind === "same" || line.kind === kind)
    .map(({ pieces }) => pieces.map(({ text }) => text).join(""))
    .join("\n");
}

test("highlights changed words within their lines and keeps the lines around", () => {
  const before = "Gives the level.\nOf a river.\nIn metres.";
  const after = "Gives the level.\nOf a river or lake.\nIn metres.";
  expect(shown(differences(before, after))).toEqual([
    " Gives the level.",
    "-Of a river.",
    "+Of a river[ or lake].",
    " In metres.",
  ]);
});

test("shows added and removed lines whole", () => {
  expect(shown(differences("a\nb\nc", "a\nc\nd"))).toEqual([" a", "-b", " c", "+d"]);
  expect(shown(differences("same", "same"))).toEqual([" same"]);
});

test("keeps both versions readable character for character in the difference", () => {
  const texts = ["", "a", "\n", " a\tb\n\nc ", "x\u200by\n\ud800", '{\n  "a": 1\n}', '{\n  "b": [1]\n}\n'];
  for (const before of texts) {
    for (const after of texts) {
      const lines = differences(before, after);
      expect(side("was", lines)).toBe(before);
      expect(side("is", lines)).toBe(after);
    }
  }
});

test("compares two unrelated texts of a quarter million characters without delay", () => {
  const startedAt = performance.now();
  const lines = differences("a\n".repeat(131_072), "b c\n".repeat(65_536));
  expect(side("is", lines)).toBe("b c\n".repeat(65_536));
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});

const seen = (text: string) =>
  seenOf(text)
    .map(({ text, isHidden }) => (isHidden ? `<${text}>` : text))
    .join("");

test("marks invisible, direction-changing and tag characters in a tool definition", () => {
  expect(seen("a\u200Bb\u202Ec\u{E0041}d\u00ADe\u2028f\u3164")).toBe(
    "a<U+200B>b<U+202E>c<U+E0041>d<U+00AD>e<U+2028>f<U+3164>",
  );
  expect(seen("\r\u0000\uD800")).toBe("<U+000D><U+0000><U+D800>");
});

test("treats line breaks, tabs, letters of any language and emoji as text", () => {
  const text = "Zeilen\n\tÜber 水位 مستوى ⚠️ 👩‍💻 fi";
  expect(seenOf(text)).toEqual([{ text, isHidden: false }]);
  expect(seenOf("")).toEqual([]);
});

test("marks characters hidden behind an emoji", () => {
  expect(seen("⚠️\u200Dx")).toBe("⚠️<U+200D>x");
});

test("gives each part of a server's advertised definition a distinct name", () => {
  const said = { title: "a", description: "b", inputSchema: {}, arguments: [], outputSchema: {}, annotations: {} };
  const labels = partsOf({ definition: { name: "x", ...said }, approved: null }).map(({ label }) => label);
  expect(new Set(labels).size).toBe(Object.keys(said).length);
});
