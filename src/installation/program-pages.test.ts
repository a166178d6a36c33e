import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { releaseProgramPages, unchangedFileMappings } from "./program-pages.ts";

const mapping = (range: string, rights: string, inode: number, anonymousKb: number) =>
  `${range} ${rights} 00000000 08:01 ${inode} /opt/program\nSize: 8 kB\nAnonymous:             ${anonymousKb} kB\nVmFlags: rd\n`;

describe("pages of the program", () => {
  test("releases only read-only file mappings without private pages", () => {
    const smaps = [
      mapping("00200000-00300000", "r--p", 7, 0),
      mapping("00300000-00400000", "r-xp", 7, 0),
      mapping("00400000-00500000", "r--p", 7, 12),
      mapping("00500000-00600000", "rw-p", 7, 0),
      mapping("00600000-00700000", "r-xp", 0, 0),
      mapping("00700000-00800000", "r--s", 7, 0),
    ].join("");
    expect(unchangedFileMappings(smaps)).toEqual([
      { start: 0x200000n, end: 0x300000n },
      { start: 0x300000n, end: 0x400000n },
    ]);
  });

  test.skipIf(process.platform !== "linux")("releases most of the program's code, which returns when it runs", () => {
    const residentKb = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
    const before = residentKb();
    releaseProgramPages();
    expect(before - residentKb()).toBeGreaterThan(10_000);
    expect(JSON.parse('{"still":["here"]}')).toEqual({ still: ["here"] });
  });
});
