// Names of files keep the extension that they have, and get the one of their kind otherwise.
import { expect, test } from "bun:test";
import { fileName } from "./file-names.ts";

test.each([
  ["Quarterly report", "application/pdf", "Quarterly report.pdf"],
  ["Report 1.2", "application/pdf", "Report 1.2.pdf"],
  ["About Node.js", "application/pdf", "About Node.js.pdf"],
  ["Scan.PDF", "application/pdf", "Scan.PDF"],
  [undefined, "application/pdf", "file.pdf"],
  ["notes", "text/plain; charset=utf-8", "notes.txt"],
  ["main.py", "text/plain", "main.py"],
  ["rows.jsonl", "application/json", "rows.jsonl"],
  ["blob", "application/x-own", "blob"],
])("calls %s of type %s %s", (name, mediaType, expected) => {
  expect(fileName(name, mediaType)).toBe(expected);
});
