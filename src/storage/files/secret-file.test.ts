// The root secret: created once, readable only by its owner, never replaced, with an independent key for each purpose.
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

test("creates 32 random bytes for the owner alone at the first start, and leaves no draft", () => {
  const secret = loadSecret(directory, undefined);
  expect(secret).toHaveLength(32);
  expect(new Set(secret).size).toBeGreaterThan(16);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("reads the same secret at later starts, and makes another one for each installation", () => {
  const first = loadSecret(directory, undefined);
  expect(loadSecret(directory, undefined)).toEqual(first);
  const other = mkdtempSync(join(tmpdir(), "headrace-secret-"));
  expect(loadSecret(other, undefined)).not.toEqual(first);
  rmSync(other, { recursive: true });
});

test("uses a configured secret unchanged and writes no file", () => {
  const configured = new Uint8Array(32).fill(9);
  expect(loadSecret(directory, configured)).toEqual(configured);
  expect(readdirSync(directory)).toEqual([]);
});

test("restricts a secret file that others can read", () => {
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
  ])("refuses a secret file that is %s, with a remedy, and keeps it", (_name, content) => {
    writeFileSync(file(), content);
    expect(() => loadSecret(directory, undefined)).toThrow(/Restore it from a backup/);
    expect(readFileSync(file(), "utf8")).toBe(content);
  });

  test("refuses a damaged secret file without showing its content", () => {
    writeFileSync(file(), "ab".repeat(31));
    expect(() => loadSecret(directory, undefined)).not.toThrow(/abab/);
  });

  test("accepts blanks and a line break around the hex of a secret file", () => {
    writeFileSync(file(), `  ${"ab".repeat(32)}\r\n`);
    expect(loadSecret(directory, undefined)).toEqual(new Uint8Array(Buffer.alloc(32, 0xab)));
  });
});

test("creates one secret if two first starts run at once", async () => {
  const script = `
    const { loadSecret } = await import(${JSON.stringify(join(import.meta.dir, "secret-file.ts"))});
    console.log(Buffer.from(loadSecret(${JSON.stringify(directory)}, undefined)).toString("hex"));`;
  const starts = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }));
  const secrets = await Promise.all(starts.map((start) => new Response(start.stdout).text()));
  expect(new Set(secrets).size).toBe(1);
  expect(secrets[0]?.trim()).toMatch(/^[0-9a-f]{64}$/);
  expect(readdirSync(directory)).toEqual(["secret"]);
});

test("derives 32-byte keys by HKDF-SHA-256 from the purpose and every bit of the secret", () => {
  const secret = new Uint8Array(32).fill(1);
  const key = deriveKey(secret, "api-key-pepper-v1");
  // The expected key is computed by hand: extract with a salt of zeros, expand with the purpose and the byte 1 (RFC
  // 5869, 2.2 and 2.3).
  const mac = (by: Uint8Array, data: Uint8Array) =>
    new Uint8Array(new Bun.CryptoHasher("sha256", by).update(data).digest());
  const extracted = mac(new Uint8Array(32), secret);
  const info = new Uint8Array([...new TextEncoder().encode("headrace api-key-pepper-v1"), 1]);
  expect(key).toEqual(mac(extracted, info));
  const other = new Uint8Array(secret);
  other[31] = 0;
  expect(deriveKey(other, "api-key-pepper-v1")).not.toEqual(key);
});
