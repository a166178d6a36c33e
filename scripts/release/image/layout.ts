// Writes an image as a directory in the layout of the OCI image specification, by its own text: blobs by their digests.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

export interface Image {
  /** Tar files, the lowest first. */
  layers: readonly string[];
  config: object;
  annotations: Readonly<Record<string, string>>;
  architecture: string;
  /** ISO 8601. */
  created: string;
  tag: string;
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** Writes the image into `directory`, which is empty; gives the bytes of its compressed layers together. */
export function writeLayout(directory: string, image: Image): number {
  mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
  const blob = (type: string, content: Uint8Array | string): Descriptor => {
    const bytes = Buffer.from(content);
    const digest = digestOf(bytes);
    writeFileSync(join(directory, "blobs", "sha256", digest.slice("sha256:".length)), bytes);
    return { mediaType: `application/vnd.oci.image.${type}`, digest, size: bytes.length };
  };
  const { architecture, annotations, config, created, tag } = image;
  const tars = image.layers.map((file) => readFileSync(file));
  const layers = tars.map((bytes) => blob("layer.v1.tar+gzip", gzipSync(bytes)));
  const described = {
    ...{ created, architecture, os: "linux", config },
    rootfs: { type: "layers", diff_ids: tars.map(digestOf) },
    history: image.layers.map((file) => ({ created, created_by: file.replace(/^.*\//, "") })),
  };
  const manifest = blob(
    "manifest.v1+json",
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json" },
      ...{ config: blob("config.v1+json", JSON.stringify(described)), layers, annotations },
    }),
  );
  const named = { ...manifest, platform: { architecture, os: "linux" } };
  const index = {
    ...{ schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json" },
    manifests: [{ ...named, annotations: { "org.opencontainers.image.ref.name": tag } }],
  };
  writeFileSync(join(directory, "index.json"), JSON.stringify(index));
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return layers.reduce((sum, { size }) => sum + size, 0);
}
