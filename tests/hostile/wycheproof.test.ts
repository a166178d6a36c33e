// Wycheproof's vectors against what signs, seals and derives here: ES256 as access tokens are checked, AES-256-GCM, HKDF.
import { describe, expect, test } from "bun:test";
import { hkdfSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compactVerify, importJWK, type JWK } from "jose";
import { seal, unseal } from "../../src/policy/credentials/sealing.ts";

interface Named {
  /** Wycheproof's id of the test, and its comment. */
  name: string;
  valid: boolean;
}
type Vector = Named & {
  jws?: string;
  key?: JWK & { key_ops?: string[] };
  aesGcm?: Record<"key" | "iv" | "aad" | "msg" | "ct" | "tag", string>;
  hkdf?: Record<"ikm" | "salt" | "info" | "okm", string> & { size: number };
};

const [about, ...lines] = readFileSync(join(import.meta.dir, "../fixtures/wycheproof/vectors.jsonl"), "utf8")
  .trim()
  .split("\n");
const vectors = lines.map((line) => JSON.parse(line) as Vector);
const hex = (text: string) => Buffer.from(text, "hex");

test("names source and licence of the Wycheproof vectors", () => {
  expect(JSON.parse(about ?? "")).toMatchObject({ license: expect.stringContaining("Apache-2.0") });
});

// hardening: A10
describe("an ES256 signature of Wycheproof", () => {
  // A key for encryption is left out: the library leaves `use` to its user, and all keys here are our own, for signing.
  const signed = vectors.filter(({ jws, key }) => jws !== undefined && key?.use !== "enc");

  test.each(signed.map((one) => [one.name, one] as const))(
    "gives Wycheproof's verdict on an ES256 signature: %s",
    async (_, one) => {
      const { jws = "", key = { kty: "EC" }, valid } = one;
      const verified = await importJWK(key, "ES256")
        // The algorithm is the only one that access tokens may have.
        .then((imported) => compactVerify(jws, imported, { algorithms: ["ES256"] }))
        .then(
          () => true,
          () => false,
        );
      expect(verified).toBe(valid);
    },
  );

  test("covers 40 ES256 vectors with some of each verdict", () => {
    expect(signed).toHaveLength(40);
    expect(new Set(signed.map(({ valid }) => valid)).size).toBe(2);
  });
});

describe("a sealed text of Wycheproof", () => {
  const sealed = vectors.flatMap(({ name, valid, aesGcm }) => (aesGcm ? [{ name, valid, ...aesGcm }] : []));
  // The context of a seal is text.
  const isText = (bytes: Buffer) => Buffer.from(bytes.toString("utf8")).equals(bytes);

  test.each(sealed.filter(({ aad }) => isText(hex(aad))).map((one) => [one.name, one] as const))(
    "opens a sealed text exactly as Wycheproof says: %s",
    (_, { key, iv, aad, msg, ct, tag, valid }) => {
      const text = `v1.${Buffer.concat([iv, ct, tag].map(hex)).toString("base64url")}`;
      const open = () => unseal(text, hex(key), hex(aad).toString("utf8"));
      if (valid) expect(open()).toBe(hex(msg).toString("utf8"));
      else expect(open).toThrow();
    },
  );
});

test("refuses a sealed text of another version with every key", () => {
  const key = new Uint8Array(32);
  const sealed = seal("text", key, "context");
  expect(unseal(sealed, key, "context")).toBe("text");
  for (const other of [sealed.replace("v1.", "v2."), sealed.slice(3), `v1${sealed}`]) {
    expect(() => unseal(other, key, "context")).toThrow();
  }
});

describe("a derived key of Wycheproof", () => {
  const derived = vectors.flatMap(({ name, valid, hkdf }) => (hkdf ? [{ name, valid, ...hkdf }] : []));

  test.each(derived.map((one) => [one.name, one] as const))(
    "derives a key as Wycheproof says: %s",
    (_, { ikm, salt, info, size, okm, valid }) => {
      const derive = () => Buffer.from(hkdfSync("sha256", hex(ikm), hex(salt), hex(info), size)).toString("hex");
      if (valid) expect(derive()).toBe(okm);
      else expect(derive).toThrow();
    },
  );
});
