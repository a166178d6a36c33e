// Addresses, URLs, secrets, paths and words as people write them.
import { describe, expect, test } from "bun:test";
import {
  bareHost,
  decodeSecret,
  decodeSecrets,
  defaultDataDir,
  isAddressOrRange,
  isExactOrigin,
  isHost,
  isLoopbackHost,
  isOriginUrl,
  readNumber,
  readSwitch,
  resolvePath,
} from "./formats.ts";

describe("hosts in the settings", () => {
  test.each(["127.0.0.1", "::1", "[::1]", "0.0.0.0", "localhost", "ai.example.com", "a-b"])(
    "accepts %s as a host",
    (host) => {
      expect(isHost(host)).toBe(true);
    },
  );
  test.each([
    "",
    "127.0.0.256",
    "1.2.3",
    "1.2.3.4.",
    "01.2.3.4",
    "::1::",
    "1:2:3:4:5:6:7:8:9",
    ":1",
    "a b",
    "http://a",
    "a:80",
    "-a",
    "[a]",
    "a_b",
  ])("rejects %p as a host", (host) => {
    expect(isHost(host)).toBe(false);
  });
  test.each(["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"])(
    "recognizes %s as loopback",
    (host) => {
      expect(isLoopbackHost(host)).toBe(true);
    },
  );
  test.each(["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com", "::ffff:10.0.0.1"])(
    "does not recognize %s as loopback",
    (host) => {
      expect(isLoopbackHost(host)).toBe(false);
    },
  );
  test("removes the brackets of an IPv6 host", () => {
    expect(bareHost("[::1]")).toBe("::1");
    expect(bareHost("a")).toBe("a");
  });
});

describe("proxy addresses in the settings", () => {
  test.each(["10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "fd00::/8", "::/0", "2001:db8::/128", "::ffff:10.0.0.1"])(
    "accepts %s as a proxy address",
    (text) => {
      expect(isAddressOrRange(text)).toBe(true);
    },
  );
  test.each([
    "",
    "10.0.0.0/33",
    "10.0.0/8",
    "fd00::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "fe80::1%eth0",
    "proxy",
  ])("rejects %p as a proxy address", (text) => {
    expect(isAddressOrRange(text)).toBe(false);
  });
});

describe("origins in the settings", () => {
  test("accepts an origin URL with no path but a slash", () => {
    expect(isOriginUrl("https://h:8443/")).toBe(true);
    expect(isOriginUrl("https://h/v1")).toBe(false);
  });
  test.each(["https://h/", "https://H", "https://h:443", "h", "null", "https://h/x"])(
    "rejects %p as an exact origin",
    (text) => {
      expect(isExactOrigin(text)).toBe(false);
    },
  );
  test("accepts an exact origin as browsers send it", () => {
    expect(isExactOrigin("https://h:8443")).toBe(true);
  });
});

describe("secrets in the settings", () => {
  const hex = "00ff".repeat(16);
  const bytes = Buffer.from(hex, "hex");
  test.each([hex, hex.toUpperCase(), bytes.toString("base64"), bytes.toString("base64url")])(
    "reads %s as a secret",
    (text) => {
      expect(decodeSecret(text)).toBe(hex);
    },
  );
  test("reads several secrets once each, separated by commas or line breaks", () => {
    const other = "ab".repeat(32);
    expect(decodeSecrets(hex)).toEqual([hex]);
    expect(decodeSecrets(`${other}, ${bytes.toString("base64")}`)).toEqual([other, hex]);
    expect(decodeSecrets(`${other}\n${hex}\n`)).toEqual([other, hex]);
    expect(decodeSecrets([hex, other, hex].join(","))).toEqual([hex, other]);
    const many = Array.from({ length: 5 }, (_, i) => String(i).repeat(64));
    for (const text of ["", ",", `${hex},`, `${hex},abc`, `${hex};${other}`, many.join(",")]) {
      expect(decodeSecrets(text)).toBeUndefined();
    }
    expect(decodeSecrets(many.slice(1).join(","))).toHaveLength(4);
  });
  test.each(["", "abc", hex.slice(1), `${hex}0`, bytes.subarray(1).toString("base64"), "x".repeat(42), " ".repeat(43)])(
    "rejects %p as a secret of other than 32 bytes",
    (text) => {
      expect(decodeSecret(text)).toBeUndefined();
    },
  );
});

describe("paths in the settings", () => {
  test("follows XDG_DATA_HOME for the data directory, else HOME, and ignores a relative XDG_DATA_HOME", () => {
    expect(defaultDataDir({ XDG_DATA_HOME: "/x", HOME: "/h" })).toBe("/x/headrace");
    expect(defaultDataDir({ HOME: "/h" })).toBe("/h/.local/share/headrace");
    expect(defaultDataDir({ XDG_DATA_HOME: "x", HOME: "/h" })).toBe("/h/.local/share/headrace");
  });
  test("resolves a path from a directory, the root or the home directory", () => {
    expect(resolvePath("a", "/c", {})).toBe("/c/a");
    expect(resolvePath("/a", "/c", {})).toBe("/a");
    expect(resolvePath("~/a", "/c", { HOME: "/h" })).toBe("/h/a");
  });
});

describe("words in the settings", () => {
  test("reads only decimal numbers as numbers", () => {
    expect(["1", " 1.5 ", "-2", "1e3", "0x10", "", "1_000", "Infinity", "1a"].map(readNumber)).toEqual([
      1,
      1.5,
      -2,
      1000,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
  test("reads only true, false, 1 and 0 as switches", () => {
    expect(["true", "FALSE", "1", "0", "yes", ""].map(readSwitch)).toEqual([
      true,
      false,
      true,
      false,
      undefined,
      undefined,
    ]);
  });
});
