// The manifests of deploy/kubernetes are what the API of Kubernetes takes, by its published schemas.
import { expect, test } from "bun:test";
import { complaints, documents, plainManifests } from "./tools.ts";

/** The oldest and the newest that are supported by somebody who hosts clusters, and one in between. */
const versions = ["1.30", "1.34", "1.37"];

const manifests = await plainManifests();

test.each(versions)("validates every field of the manifests for Kubernetes %s", async (version) => {
  const kinds = documents(manifests).map(({ kind }) => kind);
  expect(kinds).toEqual(["ConfigMap", "Service", "Service", "StatefulSet", "PodDisruptionBudget"]);
  expect(await complaints(manifests, version)).toBe("");
});

test("refuses a misspelt manifest field by name at any depth", async () => {
  for (const [right, wrong] of [
    ["readOnlyRootFilesystem", "readOnlyRootFileSystem"],
    ["maxUnavailable", "maxUnavailble"],
    ["publishNotReadyAddresses", "publishNotReadyAdresses"],
  ] as const) {
    const misspelt = manifests.replace(`${right}:`, `${wrong}:`);
    expect(misspelt).not.toBe(manifests);
    expect(await complaints(misspelt, "1.37")).toContain(wrong);
  }
  expect(await complaints(manifests.replace("replicas: 3", 'replicas: "3"'), "1.37")).toContain("integer");
});
