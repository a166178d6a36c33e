// Lists and deletes the complete and incomplete models in the data directory.
import { readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { PulledModel, RemovedModel } from "../../domain/models/pulled-model.ts";
import { type AskedShape, estimateMemory } from "./gguf/estimate.ts";
import { readModelFile } from "./gguf/model-file.ts";
import { partName, partOf } from "./model-source.ts";
import { findManifest, type ModelManifest, manifestPath, modelsDirectory } from "./model-store.ts";
import { claimPull } from "./pull-lock.ts";

/** Matches the name of a file that a pull writes. `.part` marks an incomplete file. */
const fileOfPull = /^(.+)\.gguf(?:\.part(?:\.json)?)?$/;

interface Found {
  manifest: ModelManifest | undefined;
  /** File names in the models directory. */
  files: string[];
}

const usual: AskedShape = { context: undefined, parallel: undefined };

/** Returns the pulled models, sorted by id. `shape` is used to estimate their memory. */
export async function listPulledModels(dataDir: string, shape: AskedShape = usual): Promise<PulledModel[]> {
  const found = [...(await findAll(dataDir))].sort(([a], [b]) => (a < b ? -1 : 1));
  return await Promise.all(found.map(([id, one]) => shown(dataDir, id, one, shape)));
}

/**
 * Deletes a model, except for files that other models share. Returns undefined if there is no such model.
 * Rejects with a SetupError while the model is being pulled.
 */
export async function removePulledModel(dataDir: string, id: string): Promise<RemovedModel | undefined> {
  if (!(await findAll(dataDir)).has(id)) return undefined;
  const directory = modelsDirectory(dataDir);
  const release = await claimPull(join(directory, `${id}.lock`), id);
  try {
    const all = await findAll(dataDir);
    const one = all.get(id);
    if (!one) return undefined;
    const model = await shown(dataDir, id, one, usual);
    const shared = new Set([...all].flatMap(([other, { files }]) => (other === id ? [] : files)));
    // The manifest is deleted first. A crash after that leaves a file without a manifest, not a listed model
    // without a file.
    await rm(manifestPath(dataDir, id), { force: true });
    // The last part is deleted first. If a deletion fails, the remaining earlier parts are still recognized as parts of
    // this model.
    const files = one.files.filter((file) => !shared.has(file)).sort();
    let bytes = 0;
    for (let name = files.at(-1); name !== undefined; name = files.at(-1)) {
      const path = join(directory, name);
      const size = await sizeOf(path);
      const reason = await rm(path, { force: true }).then(() => undefined, reasonOf);
      if (reason !== undefined) return { ...model, bytes, left: [...files.slice(0, -1), `${name} (${reason})`] };
      bytes += size;
      files.pop();
    }
    return { ...model, bytes, left: [] };
  } finally {
    await release();
  }
}

async function findAll(dataDir: string): Promise<Map<string, Found>> {
  const names: string[] = await readdir(modelsDirectory(dataDir)).catch(() => []);
  const found = new Map<string, Found>();
  /** The id of the model that each file belongs to, by the manifests. */
  const owners = new Map<string, string>();
  for (const name of names) {
    const manifest = name.endsWith(".gguf.part.json") ? undefined : await manifestNamed(dataDir, name);
    if (manifest) {
      const files = [manifest.file, ...manifest.otherFiles].map((path) => basename(path));
      found.set(manifest.id, { manifest, files: files.filter((file) => names.includes(file)) });
      for (const file of files) owners.set(file, manifest.id);
    }
  }
  const stems = new Set(names.flatMap((name) => fileOfPull.exec(name)?.[1] ?? []));
  for (const name of names) {
    const stem = fileOfPull.exec(name)?.[1];
    if (stem === undefined || owners.has(name)) continue;
    const id = owners.get(`${stem}.gguf`) ?? splitModelOf(stem, stems, found) ?? stem;
    const one = found.get(id) ?? { manifest: undefined, files: [] };
    one.files.push(name);
    found.set(id, one);
  }
  return found;
}

/**
 * Returns the id of the incomplete split model that a part belongs to, or undefined. Parts are downloaded in
 * order, so all earlier parts must exist.
 */
function splitModelOf(stem: string, stems: ReadonlySet<string>, found: ReadonlyMap<string, Found>): string | undefined {
  const part = partOf(stem);
  if (!part || part.index > part.count || found.get(part.stem)?.manifest) return undefined;
  for (let before = part.index - 1; before > 0; before--) {
    if (!stems.has(partName(part.stem, before, part.count))) return undefined;
  }
  return part.stem;
}

async function manifestNamed(dataDir: string, name: string): Promise<ModelManifest | undefined> {
  return name.endsWith(".json") ? await findManifest(dataDir, name.slice(0, -".json".length)) : undefined;
}

async function shown(dataDir: string, id: string, { manifest, files }: Found, shape: AskedShape): Promise<PulledModel> {
  const directory = modelsDirectory(dataDir);
  const sizes = await Promise.all(files.map((name) => sizeOf(join(directory, name))));
  const wanted = manifest ? [manifest.file, ...manifest.otherFiles] : [];
  const isWhole = manifest !== undefined && wanted.every((path) => files.includes(basename(path)));
  // A model whose file cannot be read is still listed, so that it can be deleted.
  const facts = isWhole ? await readModelFile(wanted).catch(() => undefined) : undefined;
  return {
    id,
    bytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
    state: isWhole ? "ready" : "incomplete",
    source: manifest?.source ?? null,
    pulledAt: manifest?.pulledAt ?? null,
    context: manifest?.context ?? null,
    capabilities: manifest?.capabilities ?? null,
    facts: facts
      ? { architecture: facts.architecture, quantization: facts.quantization ?? null, parameters: facts.parameters }
      : null,
    memory: facts ? estimateMemory(facts, shape) : null,
  };
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

/** Returns the size of a file, or 0 if the file is gone. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
