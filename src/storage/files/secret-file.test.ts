// The root secret: made once, for its owner only, never replaced, and one independent key for each purpose.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deriveKey, loadSecret } from "./secret-file.ts";

let directory: string;
const file = () => join(directory, "secret");

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-secret-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("the first start makes 32 random bytes, for the owner only, and leaves no draft behind", () => {
  const secret = loadSecret(directory, undefined);
  expect(secret).toHaveLength(32);
  expect(new Set(secret).size).toBeGreaterThan(16);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("later starts read the same secret, and no two installations have the same", () => {
  const first = loadSecret(directory, undefined);
  expect(loadSecret(directory, undefined)).toEqual(first);
  const other = mkdtempSync(join(tmpdir(), "headrace-secret-"));
  expect(loadSecret(other, undefined)).not.toEqual(first);
  rmSync(other, { recursive: true });
});

test("a configured secret is used as it is and leaves no file", () => {
  const configured = new Uint8Array(32).fill(9);
  expect(loadSecret(directory, configured)).toEqual(configured);
  expect(readdirSync(directory)).toEqual([]);
});

test("a file that others can read is closed to them", () => {
  loadSecret(directory, undefined);
  chmodSync(file(), 0o644);
  loadSecret(directory, undefined);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

describe("a damaged file", () => {
  test.each([
    ["empty", ""],
    ["short", "00".repeat(31)],
    ["long", "00".repeat(33)],
    ["no hex", "this is not hex at all, and it is quite a bit longer than it needs to be"],
    ["half hex", `${"ab".repeat(20)}xyz`],
    ["hex with text behind", `${"ab".repeat(32)} and a comment`],
  ])("a damaged file that is %s is refused with a way out, and stays as it is", (_name, content) => {
    writeFileSync(file(), content);
    expect(() => loadSecret(directory, undefined)).toThrow(/Restore it from a backup/);
    expect(readFileSync(file(), "utf8")).toBe(content);
  });

  test("a damaged file is refused without showing what is in it", () => {
    writeFileSync(file(), "ab".repeat(31));
    expect(() => loadSecret(directory, undefined)).not.toThrow(/abab/);
  });

  test("blanks and a line break around the hex are no damage", () => {
    writeFileSync(file(), `  ${"ab".repeat(32)}\r\n`);
    expect(loadSecret(directory, undefined)).toEqual(new Uint8Array(Buffer.alloc(32, 0xab)));
  });
});

test("two first starts at once end up with the same secret", async () => {
  const script = `
    const { loadSecret } = await import(${JSON.stringify(join(import.meta.dir, "secret-file.ts"))});
    console.log(Buffer.from(loadSecret(${JSON.stringify(directory)}, undefined)).toString("hex"));`;
  const starts = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }));
  const secrets = await Promise.all(starts.map((start) => new Response(start.stdout).text()));
  expect(new Set(secrets).size).toBe(1);
  expect(secrets[0]?.trim()).toMatch(/^[0-9a-f]{64}$/);
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("derived keys are 32 bytes of HKDF-SHA-256 under their purpose, and depend on every bit of the secret", () => {
  const secret = new Uint8Array(32).fill(1);
  const key = deriveKey(secret, "api-key-pepper-v1");
  // Computed by hand: extract with a salt of zeros, expand with the purpose and the byte 1 (RFC 5869, 2.2 and 2.3).
  const mac = (by: Uint8Array, data: Uint8Array) =>
    new Uint8Array(new Bun.CryptoHasher("sha256", by).update(data).digest());
  const extracted = mac(new Uint8Array(32), secret);
  const info = new Uint8Array([...new TextEncoder().encode("headrace api-key-pepper-v1"), 1]);
  expect(key).toEqual(mac(extracted, info));
  const other = new Uint8Array(secret);
  other[31] = 0;
  expect(deriveKey(other, "api-key-pepper-v1")).not.toEqual(key);
});
