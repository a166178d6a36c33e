// What stands beside the files that are published holds for their bytes: sums that other programs check, and a provenance that a key has signed.
import { afterAll, expect, test } from "bun:test";
import { createHash, generateKeyPairSync, verify } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { attest } from "../../scripts/release/attest.ts";

const release = mkdtempSync(join(tmpdir(), "headrace-attest-"));
afterAll(() => rmSync(release, { recursive: true }));

const file = join(release, "headrace");
writeFileSync(file, "the program");
const provenance = join(release, `headrace-${packageJson.version}.intoto.json`);
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const keyFile = join(release, "key.pem");
writeFileSync(keyFile, privateKey.export({ type: "pkcs8", format: "pem" }));

function checkSums(): number {
  return Bun.spawnSync(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], { cwd: release }).exitCode;
}

test("verifies checksums of files, bill of materials and provenance, and detects a change", () => {
  attest(release, [file], undefined);
  expect(readFileSync(join(release, "SHA256SUMS"), "utf8").trimEnd().split("\n")).toHaveLength(3);
  expect(checkSums()).toBe(0);
  writeFileSync(file, "another program");
  expect(checkSums()).not.toBe(0);
  writeFileSync(file, "the program");
});

test("names the file by digest in the provenance, and signs exactly that DSSE statement", () => {
  attest(release, [file], keyFile);
  const { payload, payloadType, signatures } = JSON.parse(readFileSync(provenance, "utf8"));
  const statement = Buffer.from(payload, "base64");
  const signed = Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${statement.length} ${statement}`);
  const signature = Buffer.from(signatures[0].sig, "base64");
  expect(verify(null, signed, publicKey, signature)).toBe(true);
  expect(verify(null, Buffer.concat([signed, Buffer.from(" ")]), publicKey, signature)).toBe(false);
  const { subject, predicateType } = JSON.parse(statement.toString());
  expect(predicateType).toBe("https://slsa.dev/provenance/v1");
  const digest = createHash("sha256").update("the program").digest("hex");
  expect(subject).toContainEqual({ name: "headrace", digest: { sha256: digest } });
});

test("keeps earlier checksums in a partial release unless the bytes changed", () => {
  const part = join(release, "headrace.deb");
  const changed = join(release, "headrace.tgz");
  for (const path of [part, changed]) writeFileSync(path, "made first");
  attest(release, [part, changed], undefined);
  writeFileSync(changed, "of another build");
  attest(release, [file], undefined);
  const names = readFileSync(join(release, "SHA256SUMS"), "utf8").match(/(?<= {2}).+$/gm);
  expect(names).toContain("headrace.deb");
  expect(names).not.toContain("headrace.tgz");
  expect(checkSums()).toBe(0);
  const { subject } = JSON.parse(readFileSync(provenance, "utf8"));
  expect(subject.map(({ name }: { name: string }) => name)).toContain("headrace.deb");
});

test("refuses a signing key of another kind by its file's name", () => {
  const { privateKey: other } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(keyFile, other.export({ type: "pkcs8", format: "pem" }));
  expect(() => attest(release, [file], keyFile)).toThrow("key.pem must be an Ed25519 key in PEM");
});
