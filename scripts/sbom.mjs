// `npm run sbom`: the bill of materials of what runs, as CycloneDX JSON on standard output. The same lock file gives the
// same bytes. Not `npm sbom`: with --omit=dev that leaves out what development needs as well, jose and zod among it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const own = packages[""];
const { description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Reports whether running may need the package: development packages and back-ends that no install brings are left out. */
const runs = ({ dev, cpu }) => !dev && !cpu?.includes("none");
/** The packages that run, by their places in node_modules. */
const installed = Object.entries(packages).filter(([path, entry]) => path !== "" && runs(entry));
const nameOf = (path, entry) => entry.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
const purlOf = (name, version) => `pkg:npm/${name.replace("@", "%40")}@${version}`;
const refOf = (path) => purlOf(nameOf(path, packages[path]), packages[path].version);

/** SPDX: one licence by its id, several as an expression. */
function licencesOf(licence) {
  if (licence === undefined) return {};
  return { licenses: [/ (OR|AND|WITH) /.test(licence) ? { expression: licence } : { license: { id: licence } }] };
}

/** npm writes digests as base64, one for each algorithm. */
function hashesOf(integrity) {
  if (integrity === undefined) return {};
  const hashes = integrity.split(" ").map((one) => {
    const [algorithm, digest] = [one.slice(0, one.indexOf("-")), one.slice(one.indexOf("-") + 1)];
    return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") };
  });
  return { hashes };
}

/** Where Node would find it from there; undefined where an optional one is not there at all. */
function placeOf(name, from) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
    const place = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (packages[place] && runs(packages[place])) return place;
    if (folder === "") return undefined;
  }
}

function dependenciesOf(path, entry) {
  const names = Object.keys({ ...entry.dependencies, ...entry.optionalDependencies, ...entry.peerDependencies });
  const places = names.map((name) => placeOf(name, path)).filter((place) => place !== undefined);
  return [...new Set(places.map(refOf))].sort();
}

/** One package may be in several places. */
const components = new Map();
const dependencies = new Map();
for (const [path, entry] of installed) {
  const ref = refOf(path);
  const isOptional = entry.optional === true && components.get(ref)?.scope !== "required";
  components.set(ref, {
    type: "library",
    "bom-ref": ref,
    name: nameOf(path, entry),
    version: entry.version,
    scope: isOptional ? "optional" : "required",
    ...hashesOf(entry.integrity),
    ...licencesOf(entry.license),
    purl: ref,
  });
  dependencies.set(ref, [...new Set([...(dependencies.get(ref) ?? []), ...dependenciesOf(path, entry)])].sort());
}

const self = purlOf(own.name, own.version);
dependencies.set(self, dependenciesOf("", { dependencies: own.dependencies }));
const content = {
  metadata: {
    lifecycles: [{ phase: "pre-build" }],
    component: {
      type: "application",
      "bom-ref": self,
      name: own.name,
      version: own.version,
      description,
      ...licencesOf(own.license),
      purl: self,
    },
  },
  components: [...components.values()].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1)),
  dependencies: [...dependencies].sort(([a], [b]) => (a < b ? -1 : 1)).map(([ref, dependsOn]) => ({ ref, dependsOn })),
};
const digest = createHash("sha256").update(JSON.stringify(content)).digest("hex");
/** RFC 9562, 5.8: made from what is told, so that it tells two bills apart and is the same for the same. */
const serial = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
const bill = { bomFormat: "CycloneDX", specVersion: "1.5", serialNumber: `urn:uuid:${serial}`, version: 1, ...content };
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
