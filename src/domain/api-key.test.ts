// API keys: their form, the checksum that catches every mistyped character, even randomness.
import { describe, expect, test } from "bun:test";
import { displayParts, environments, generateApiKey, parseApiKey } from "./api-key.ts";

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test.each([...environments])("a %s key has its prefix, the infix, and 36 base62 characters", (environment) => {
  const key = generateApiKey(environment);
  expect(key).toMatch(new RegExp(`^sk_${environment}_hr_[0-9A-Za-z]{36}$`));
  expect(parseApiKey(key)).toBe(environment);
});

describe("the checksum", () => {
  test("the checksum refuses every change of any single character, wherever it stands", () => {
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

  test("the checksum refuses neighbours that changed places", () => {
    const key = generateApiKey("live");
    for (let i = 11; i < key.length - 1; i++) {
      if (key[i] === key[i + 1]) continue;
      expect(parseApiKey(key.slice(0, i) + key[i + 1] + key[i] + key.slice(i + 2))).toBeUndefined();
    }
  });

  test("binds the environment: a live key is no dev key", () => {
    const key = generateApiKey("live");
    for (const other of ["test", "dev"]) expect(parseApiKey(key.replace("live", other))).toBeUndefined();
  });

  test("the checksum is the base62 CRC-32 of what precedes, so that a secret scanner can check it", () => {
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
])("%p is no key", (text) => {
  expect(parseApiKey(text)).toBeUndefined();
});

test("10,000 keys are all different, and every character is about as frequent as any other", () => {
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
  // Chi-square with 61 degrees of freedom: above 130 in one of a million even samples. A byte modulo 62 gives 20,000.
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(chiSquare).toBeLessThan(130);
});

test("the prefix and the last four characters of a key are all that may be shown of it", () => {
  const key = generateApiKey("dev");
  const { prefix, last4 } = displayParts(key);
  expect(prefix).toBe("sk_dev_hr_");
  expect(last4).toBe(key.slice(-4));
});
