// Addresses and ranges: nothing is read that is not one, and what is read means the same however it was written.
import { describe, expect, test } from "bun:test";
import { isIP } from "node:net";
import { formatRange, type IpRange, parseRange, rangeCovers, rangesContain } from "./ip-range.ts";

function range(text: string): IpRange {
  const parsed = parseRange(text);
  if (!parsed) throw new Error(`${text} should be a range`);
  return parsed;
}

/** A generator with a fixed seed: a failure comes again. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe("parsing of IP ranges", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["192.0.2.1/32", "192.0.2.1"],
    ["192.0.2.77/24", "192.0.2.0/24"],
    ["255.255.255.255/1", "128.0.0.0/1"],
    ["10.1.2.3/0", "0.0.0.0/0"],
    ["2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"],
    ["2001:db8::1/32", "2001:db8::/32"],
    ["2001:db8:ffff:ffff::/33", "2001:db8:8000::/33"],
    ["::", "::"],
    ["::1/128", "::1"],
    ["::/0", "::/0"],
    ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["1:0:0:2:0:0:3:4", "1::2:0:0:3:4"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["::ffff:10.1.2.3/104", "10.0.0.0/8"],
    ["::ffff:0:0/96", "0.0.0.0/0"],
  ])("normalizes %s to %s", (text, normalised) => {
    expect(formatRange(range(text))).toBe(normalised);
    expect(range(normalised)).toEqual(range(text));
  });

  test.each([
    ...["", " ", "1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "0x1.2.3.4", "1.2.3.256", "1.2.3.-4", "1.2.3.+4"],
    ...["1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/08", "1.2.3.4/8/8"],
    ...["1.2.3.4/255.0.0.0", "1.2.3.4/1e1", "1.2.3.4/ 8", "/8", "１.2.3.4", "1..3.4", "localhost", "*", "0.0.0.0/999"],
    ...[
      ":",
      ":::",
      "1::2::3",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "1:2:3:4:5:6:7::8",
      "12345::",
      "g::",
      ":1::",
      "1::2:",
    ],
    ...["fe80::1%eth0", "fe80::1%1/64", "[::1]", "::1/129", "::ffff:1.2.3", "1.2.3.4::", "::1.2.3.4:5", "::01.2.3.4"],
  ])("rejects %p as a range", (text) => {
    expect(parseRange(text)).toBeUndefined();
  });

  test("agrees with the runtime about 60,000 texts that are almost addresses", () => {
    const next = random(20_260_101);
    const pieces = [
      "0",
      "1",
      "9",
      "255",
      "256",
      "00",
      "f",
      "ffff",
      "abcde",
      ":",
      ":",
      ":",
      "::",
      ".",
      ".",
      ".",
      "-",
      " ",
      "g",
    ];
    const seeds = [
      "1.2.3.4",
      "10.0.0.255",
      "::1",
      "2001:db8::8",
      "::ffff:1.2.3.4",
      "1:2:3:4:5:6:7:8",
      "1:2:3:4:5:6:1.2.3.4",
    ];
    let valid = 0;
    for (let i = 0; i < 60_000; i++) {
      let text = "";
      if (i % 2 === 0) for (let n = next(16); n >= 0; n--) text += pieces[next(pieces.length)];
      else {
        const seed = seeds[next(seeds.length)] ?? "";
        const at = next(seed.length + 1);
        text = seed.slice(0, at) + (pieces[next(pieces.length)] ?? "") + seed.slice(at + next(3));
      }
      if (isIP(text) !== 0) valid++;
      if ((parseRange(text) !== undefined) !== (isIP(text) !== 0))
        throw new Error(`differs for ${JSON.stringify(text)}`);
    }
    expect(valid).toBeGreaterThan(3_000);
  });
});

describe("comparison of IP ranges", () => {
  test.each([
    ["192.0.2.0/24", "192.0.2.0", true],
    ["192.0.2.0/24", "192.0.2.255", true],
    ["192.0.2.0/24", "192.0.3.0", false],
    ["192.0.2.0/24", "192.0.1.255", false],
    ["192.0.2.0/24", "::ffff:192.0.2.9", true],
    ["::ffff:192.0.2.0/120", "192.0.2.9", true],
    ["0.0.0.0/0", "255.255.255.255", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "1.2.3.4", false],
    ["::/0", "::ffff:1.2.3.4", false],
    ["::1.2.3.4", "1.2.3.4", false],
    ["2001:db8:8000::/33", "2001:db8:8000::1", true],
    ["2001:db8:8000::/33", "2001:db8:7fff::1", false],
    ["2001:db8::/32", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true],
    ["2001:db8::1", "2001:DB8:0::1", true],
    ["2001:db8::1", "2001:db8::2", false],
    ["0.0.0.0/0", "", false],
    ["0.0.0.0/0", "unknown", false],
    ["0.0.0.0/0", "10.0.0.0/8", false],
    ["::/0", "fe80::1%eth0", false],
  ])("decides whether %s contains %p: %p", (text, address, contained) => {
    expect(rangesContain([range(text)], address)).toBe(contained);
  });

  test.each([
    ["10.0.0.0/8", "10.1.0.0/16", true],
    ["10.0.0.0/8", "10.0.0.0/8", true],
    ["10.0.0.0/8", "10.0.0.0/7", false],
    ["10.0.0.0/8", "11.0.0.0/16", false],
    ["10.0.0.0/8", "::ffff:10.2.0.0/112", true],
    ["::/0", "10.0.0.0/8", false],
    ["0.0.0.0/0", "::/0", false],
    ["2001:db8::/32", "2001:db8:1::/48", true],
    ["2001:db8::/48", "2001:db8:1::/48", false],
  ])("decides whether %s covers %s: %p", (outer, inner, covered) => {
    expect(rangeCovers(range(outer), range(inner))).toBe(covered);
  });

  test("contains an address in any of several ranges, and none without ranges", () => {
    const ranges = [range("10.0.0.0/8"), range("2001:db8::/32")];
    const inside = ["10.9.9.9", "2001:db8::9", "11.0.0.0", "::1"].map((address) => rangesContain(ranges, address));
    expect(inside).toEqual([true, true, false, false]);
    expect(rangesContain([], "10.0.0.1")).toBe(false);
  });

  test("contains exactly the covered addresses for 20,000 random pairs of both families", () => {
    const next = random(7);
    const word = () => next(65_536);
    for (let i = 0; i < 20_000; i++) {
      const v4 = i % 2 === 0;
      const groups = Array.from({ length: v4 ? 4 : 8 }, () => (v4 ? next(256) : word()));
      const prefix = next(groups.length * (v4 ? 8 : 16) + 1);
      const size = v4 ? 8 : 16;
      // Flips one bit: what differs before the prefix is outside, what differs after it is inside.
      const bit = next(groups.length * size);
      const other = groups.map((group, at) =>
        at === Math.floor(bit / size) ? group ^ (1 << (size - 1 - (bit % size))) : group,
      );
      const text = (parts: number[]) => (v4 ? parts.join(".") : parts.map((part) => part.toString(16)).join(":"));
      const outer = range(`${text(groups)}/${prefix}`);
      expect(rangesContain([outer], text(groups))).toBe(true);
      expect(rangesContain([outer], text(other))).toBe(bit >= prefix);
      expect(rangeCovers(outer, range(text(other)))).toBe(bit >= prefix);
      expect(range(formatRange(outer))).toEqual(outer);
    }
  });
});
