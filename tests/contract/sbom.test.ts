// What runs comes from the lock file alone: a bill of materials that lists it, licences that may be passed on, no install scripts.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const root = join(import.meta.dir, "..", "..");

interface LockEntry {
  name?: string;
  version: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  hasInstallScript?: boolean;
}

interface Component {
  name: string;
  version: string;
  purl: string;
  "bom-ref": string;
  scope: string;
  hashes?: { alg: string; content: string }[];
  licenses?: { license?: { id: string }; expression?: string }[];
}

const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages as Record<string, LockEntry>;
const entries = Object.entries(lock).filter(([path]) => path !== "");
const running = entries.filter(([, { dev, cpu }]) => dev !== true && !cpu?.includes("none"));
const nameOf = (path: string, entry: LockEntry) => entry.name ?? path.replace(/^.*node_modules\//, "");

function makeBill(): string {
  const { stdout, stderr, status } = spawnSync("node", [join(root, "scripts", "sbom.mjs")], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const text = makeBill();
const bill = JSON.parse(text) as {
  bomFormat: string;
  specVersion: string;
  serialNumber: string;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
};

// hardening: S3
test("builds the same CycloneDX bill of materials each time", () => {
  expect(makeBill()).toBe(text);
  expect([bill.bomFormat, bill.specVersion]).toEqual(["CycloneDX", "1.5"]);
  expect(bill.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(bill.metadata.component).toMatchObject({ name: "headrace", version: packageJson.version });
});

// hardening: S1, S3
test("lists exactly the runtime packages of the lock file once, with npm's digest", () => {
  const listed = bill.components.map(({ name, version }) => `${name}@${version}`);
  expect(listed).toEqual([...new Set(listed)]);
  const wanted = new Set(running.map(([path, entry]) => `${nameOf(path, entry)}@${entry.version}`));
  expect(listed.toSorted()).toEqual([...wanted].sort());
  for (const [path, entry] of running) {
    const found = bill.components.find(
      ({ name, version }) => name === nameOf(path, entry) && version === entry.version,
    );
    const digest = entry.integrity && Buffer.from(entry.integrity.slice("sha512-".length), "base64").toString("hex");
    expect([path, found?.hashes?.[0]?.content]).toEqual([path, digest]);
    expect(found?.purl).toBe(`pkg:npm/${found?.name.replace("@", "%40")}@${entry.version}`);
  }
  for (const name of Object.keys(packageJson.dependencies))
    expect(bill.components.map((one) => one.name)).toContain(name);
});

// hardening: S3
test("reaches all packages from Headrace in the bill, and names no unlisted one", () => {
  const dependsOn = new Map(bill.dependencies.map((one) => [one.ref, one.dependsOn]));
  const reached = new Set<string>();
  const visit = (ref: string) => {
    if (reached.has(ref)) return;
    reached.add(ref);
    for (const next of dependsOn.get(ref) ?? []) visit(next);
  };
  visit(bill.metadata.component["bom-ref"]);
  const listed = bill.components.map((component) => component["bom-ref"]);
  expect([...reached].sort()).toEqual([bill.metadata.component["bom-ref"], ...listed].sort());
});

/** All of these allow passing on, changed or not, beside Apache-2.0. */
const permissive = /^(MIT|MIT-0|ISC|0BSD|BSD-2-Clause|BSD-3-Clause|Apache-2\.0|BlueOak-1\.0\.0|Unlicense|CC0-1\.0)$/;

// hardening: S2
test("requires a digest and a redistributable licence for every package except foreign binaries", () => {
  for (const { name, licenses, hashes } of bill.components) {
    const [path, entry] = running.find(([at, one]) => nameOf(at, one) === name) ?? ["", undefined];
    if (entry?.os && !entry.os.includes("linux") && entry.integrity === undefined) continue;
    expect([name, hashes?.[0]?.alg]).toEqual([name, "SHA-512"]);
    const licence = licenses?.[0]?.license?.id ?? licenses?.[0]?.expression ?? "none";
    const choices = licence.replace(/[()]/g, "").split(" OR ");
    expect([path, licence, choices.some((one) => permissive.test(one))]).toEqual([path, licence, true]);
  }
});

// hardening: S1
test("runs none of the three packages' install scripts, since none is needed", () => {
  const scripted = entries.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  // Two would copy the executable that is started by its own path, the last build from source what comes built.
  expect(scripted).toEqual(["node_modules/bun", "node_modules/esbuild", "node_modules/node-llama-cpp"]);
  const files = [
    "scripts/setup.mjs",
    ...readdirSync(join(root, "deploy"), { recursive: true }).map((one) => `deploy/${one}`),
  ];
  let installs = 0;
  for (const file of files) {
    let source: string;
    try {
      source = readFileSync(join(root, file), "utf8");
    } catch {
      continue;
    }
    for (const [command] of source.matchAll(/npm (?:ci|install|uninstall)\b[^`\n]*/g)) {
      installs++;
      expect([file, command]).toEqual([file, expect.stringContaining("--ignore-scripts")]);
    }
  }
  expect(installs).toBeGreaterThan(1);
  expect(readFileSync(join(root, "scripts", "setup.mjs"), "utf8")).toContain('"--ignore-scripts"');
});
