// What stands beside the files that are published: their sums, the bill of materials, and where they come from.
import { execFileSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import packageJson from "../../package.json" with { type: "json" };

const root = join(import.meta.dir, "..", "..");
const payloadType = "application/vnd.in-toto+json";

/**
 * Writes SHA256SUMS, the bill of materials (CycloneDX) and the provenance (SLSA 1.0 in an in-toto statement) of `made` and
 * of what was made of the same commit before and is still there.
 * @param keyFile an Ed25519 key (PEM), by which the provenance is signed as DSSE has it; undefined: it is not signed
 */
export function attest(release: string, made: readonly string[], keyFile: string | undefined): void {
  const name = `headrace-${packageJson.version}`;
  const files = [...new Set([...made, ...madeBefore(release, `${name}.intoto.json`)])].sort();
  const bill = join(release, `${name}.cdx.json`);
  writeFileSync(bill, execFileSync(process.execPath, [join(root, "scripts", "sbom.mjs")]));
  const provenance = join(release, `${name}.intoto.json`);
  const statement = JSON.stringify(statementOf([...new Set([...files, bill])]));
  writeFileSync(provenance, `${keyFile === undefined ? statement : signed(statement, keyFile)}\n`);
  const sums = [...new Set([...files, bill, provenance])].map((file) => `${sha256(file)}  ${basename(file)}\n`);
  writeFileSync(join(release, "SHA256SUMS"), sums.sort().join(""));
}

/** The files of an earlier provenance, where it is of the same sources and they have the bytes that it names. */
function madeBefore(release: string, provenance: string): string[] {
  try {
    const written = JSON.parse(readFileSync(join(release, provenance), "utf8"));
    const text =
      written.payload === undefined ? written : JSON.parse(Buffer.from(written.payload, "base64").toString());
    const { subject, predicate }: ReturnType<typeof statementOf> = text;
    const sources = predicate.buildDefinition.resolvedDependencies;
    if (!isDeepStrictEqual(sources, statementOf([]).predicate.buildDefinition.resolvedDependencies)) return [];
    return subject
      .filter(({ name, digest }) => existsSync(join(release, name)) && sha256(join(release, name)) === digest.sha256)
      .map(({ name }) => join(release, name));
  } catch {
    return [];
  }
}

function sha256(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

/** Nothing in it is of the moment or of the machine, so that whoever builds the same gets the same. */
function statementOf(files: readonly string[]) {
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: files.map((file) => ({ name: basename(file), digest: { sha256: sha256(file) } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:headrace:release:1",
        externalParameters: { command: "npm run release" },
        resolvedDependencies: [
          ...commit(),
          { uri: "package-lock.json", digest: { sha256: sha256(join(root, "package-lock.json")) } },
          { uri: `pkg:npm/bun@${Bun.version}` },
        ],
      },
      runDetails: { builder: { id: "urn:headrace:release-script" } },
    },
  };
}

/** Nobody knows that of an archive of the sources: it is left out there. */
function commit(): object[] {
  const { stdout, success } = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: root, stderr: "ignore" });
  return success ? [{ uri: "git:headrace", digest: { gitCommit: stdout.toString().trim() } }] : [];
}

/** A DSSE envelope, https://github.com/secure-systems-lab/dsse. */
function signed(statement: string, keyFile: string): string {
  const key = createPrivateKey(readFileSync(keyFile));
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`${keyFile} must be an Ed25519 key in PEM.`);
  const length = Buffer.byteLength(statement);
  const signature = sign(null, Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${length} ${statement}`), key);
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return JSON.stringify({
    payloadType,
    payload: Buffer.from(statement).toString("base64"),
    signatures: [{ keyid: createHash("sha256").update(spki).digest("hex"), sig: signature.toString("base64") }],
  });
}
