// Tests CSV: which requests prefer it, and what is in a cell.
import { describe, expect, test } from "bun:test";
import { csvLine, prefersCsv } from "./csv.ts";

describe("CSV by the accept header", () => {
  const csv = [
    "text/csv",
    "Text/CSV; charset=utf-8",
    "text/csv, */*;q=0.1",
    "text/csv, */*",
    "application/json;q=0.5, text/csv;q=0.6",
    "text/*",
    "*/*;q=0.1,text/csv;q=0.2",
    "text/csv, application/json;q=0",
  ];
  test.each(csv)("prefers CSV for %p", (accept) => expect(prefersCsv(accept)).toBe(true));

  const json = [
    "",
    "*/*",
    "application/json",
    "application/json, text/csv",
    "text/csv;q=0",
    "text/csv;q=0, */*",
    "text/csv;q=0.4, application/*;q=0.5",
    "text/html, */*;q=0.8",
    "text/csv;q=2",
    "text/csvx",
    ";;,,=",
  ];
  test.each(json)("does not prefer CSV for %p", (accept) => expect(prefersCsv(accept)).toBe(false));

  test("does not prefer CSV without an accept header", () => expect(prefersCsv(null)).toBe(false));
});

describe("a line", () => {
  test("ends a CSV line in CR LF, leaves null empty, and quotes commas, quotes and line ends", () => {
    expect(csvLine(["a", 1, null, 'b"c', "d,e", "f\ng", "h\ri"])).toBe('a,1,,"b""c","d,e","f\ng","h\ri"\r\n');
  });

  test.each(["＝1+1", "＋1", "－1", "＠x", " =1", "\u00A0=1", "\uFEFF=1", "\u200B=1", "\r=1", "\n=1", "\0=1", "\v=1"])(
    "writes %j so that a spreadsheet shows it as text",
    (cell) => expect(csvLine([cell])).toMatch(/^"?'/),
  );

  test("writes no formula that a spreadsheet would run, and leaves numbers alone", () => {
    expect(csvLine(["=1+1", "+1", "-1", "@x", "\t=1", '=HYPERLINK("http://x";"y")', -1, "a=b"])).toBe(
      `'=1+1,'+1,'-1,'@x,'\t=1,"'=HYPERLINK(""http://x"";""y"")",-1,a=b\r\n`,
    );
  });
});
