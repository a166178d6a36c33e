// API keys: the format, the checksum that catches every mistyped character, and evenly distributed random characters.
import { describe, expect, test } from "bun:test";
import { displayParts, environments, generateApiKey, parseApiKey } from "./api-key.ts";

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test.each([...environments])("makes a %s key of its prefix, the infix and 36 base62 characters", (environment) => {
  const key = generateApiKey(environment);
  expect(key).toMatch(new RegExp(`^sk_${environment}_hr_[0-9A-Za-z]{36}$`));
  expect(parseApiKey(key)).toBe(environment);
});

describe("the checksum", () => {
  test("detects every change of a single character by the checksum", () => {
    for (const environment of environments) {
      const key = generateApiKey(environment);
      for (let i = 0; i < key.length; i++) {
        for (const other of `${base62}_-`) {
          if (other === key[i]) continue;
          expect(parseApiKey(key.slice(0, i) + other + key.slice(i + 1))).toBeUndefined();
        }
      }
    }
  });

  test("detects swapped neighbours by the checksum", () => {
    const key = generateApiKey("live");
    for (let i = 11; i < key.length - 1; i++) {
      if (key[i] === key[i + 1]) continue;
      expect(parseApiKey(key.slice(0, i) + key[i + 1] + key[i] + key.slice(i + 2))).toBeUndefined();
    }
  });

  test("binds a key to its environment by the checksum", () => {
    const key = generateApiKey("live");
    for (const other of ["test", "dev"]) expect(parseApiKey(key.replace("live", other))).toBeUndefined();
  });

  test("computes the checksum as base62 CRC-32, which a secret scanner can verify", () => {
    const key = generateApiKey("test");
    const digits = [...key.slice(-6)].reduce((value, digit) => value * 62 + base62.indexOf(digit), 0);
    expect(digits).toBe(Bun.hash.crc32(key.slice(0, -6)));
  });
});

test.each([
  "",
  "sk_dev_hr_",
  "sk_dev_",
  "sk-proj-0123456789012345678901234567890123456789",
  ` ${generateApiKey("dev")}`,
  `${generateApiKey("dev")} `,
  `${generateApiKey("dev")}\n`,
  `${generateApiKey("dev")}0`,
  generateApiKey("dev").slice(1),
  generateApiKey("dev").toUpperCase(),
  generateApiKey("dev").replace("sk_dev", "sk_prod"),
])("rejects %p as a key", (text) => {
  expect(parseApiKey(text)).toBeUndefined();
});

test("makes 10,000 distinct keys with evenly distributed characters", () => {
  const keys = Array.from({ length: 10_000 }, () => generateApiKey("live"));
  expect(new Set(keys).size).toBe(keys.length);
  const counts = new Map<string, number>();
  for (const key of keys) {
    for (const character of key.slice("sk_live_hr_".length, -6)) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }
  }
  expect(counts.size).toBe(62);
  const expected = (keys.length * 30) / 62;
  // Chi-square with 61 degrees of freedom exceeds 130 in one of a million even samples. Taking a byte modulo 62 would
  // give 20,000.
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(chiSquare).toBeLessThan(130);
});

test("shows only the prefix and the last four characters of a key", () => {
  const key = generateApiKey("dev");
  const { prefix, last4 } = displayParts(key);
  expect(prefix).toBe("sk_dev_hr_");
  expect(last4).toBe(key.slice(-4));
});
