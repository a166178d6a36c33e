// Tests the token estimates of prompts that are lists of blocks or items.
import { expect, test } from "bun:test";
import { shownTokens } from "./shown-tokens.ts";

const tokensOf = (...content: object[]) => shownTokens({ messages: [{ role: "user", content }] }, ["messages"]);
const document = (source: object) => ({ type: "document", title: "A", source });

test("counts a text document by its text, and a document of bytes or at an address by a constant", () => {
  const long = "word ".repeat(8_000);
  const ofText = tokensOf({ type: "text", text: long });
  const asDocument = tokensOf(document({ type: "text", media_type: "text/plain", data: long }));
  const asBlocks = tokensOf(document({ type: "content", content: [{ type: "text", text: long }] }));
  for (const tokens of [asDocument, asBlocks]) expect(Math.abs(tokens - ofText)).toBeLessThan(10);
  const bytes = tokensOf(document({ type: "base64", media_type: "application/pdf", data: "AAAA".repeat(9_000) }));
  expect(bytes).toBe(tokensOf(document({ type: "url", url: "https://a.test/a.pdf" })));
  expect(bytes).toBeLessThan(1_100);
});
