// The downloaded models in `<dataDir>/models`: each has a manifest beside its GGUF files.
import { mkdir, open, readdir, readFile, rename, stat } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { z } from "zod";
import { SetupError } from "./setup-error.ts";
import { syncNames } from "./synced-files.ts";

/** Id of the model that ships with Headrace. */
export const demoId = "tiny-demo";

const modelId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,127}$/);
const fileName = z.string().refine((name) => name !== "" && basename(name) === name && !isAbsolute(name), {
  message: "must be a file name without a folder",
});

const manifestSchema = z.object({
  id: modelId,
  /** The only file, or the first part of a split model. */
  file: fileName,
  /** The further parts of a split model, in order. */
  otherFiles: z.array(fileName).default([]),
  /** The bytes of all files together. */
  bytes: z.number().int().positive(),
  /** SHA-256 of `file`, hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** The source of the model, e.g. `hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf`. */
  source: z.string(),
  /** The time of the pull in Unix seconds. */
  pulledAt: z.number().int().nonnegative(),
  /** The context length of the training, in tokens. */
  context: z.number().int().positive().optional(),
  capabilities: z.object({
    ...{ chat: z.boolean(), completion: z.boolean(), embeddings: z.boolean() },
    // Optional, because manifests of an earlier version lack these.
    ...{ rerank: z.exactOptional(z.boolean()), tokenize: z.exactOptional(z.boolean()) },
  }),
  /** True if the chat template supports tool calls. */
  tools: z.boolean(),
});

/**
 * The manifest of a pulled model. `file` and `otherFiles` are absolute paths in memory, and bare names on disk,
 * so that the data directory can be moved.
 */
export type ModelManifest = z.infer<typeof manifestSchema>;

export function modelsDirectory(dataDir: string): string {
  return join(dataDir, "models");
}

/**
 * Returns a model id made from `text`: `Qwen3-0.6B-Q8_0` becomes `qwen3-0.6b-q8_0`. Throws a SetupError (misuse)
 * if no valid id remains.
 */
export function modelIdFrom(text: string): string {
  const id = text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|(?<!-)-+$/g, "");
  if (!modelId.safeParse(id).success) {
    throw new SetupError(`'${text}' gives no usable model id. Rename the file, or choose an id with --name.`, {
      kind: "misuse",
    });
  }
  return id;
}

/** Returns `id` if it may name a model. Throws a SetupError (misuse) otherwise. */
export function checkModelId(id: string): string {
  if (id === demoId) {
    throw new SetupError(`--name '${id}': this is the id of the model that ships with Headrace. Choose another.`, {
      kind: "misuse",
    });
  }
  if (modelId.safeParse(id).success) return id;
  throw new SetupError(
    `--name '${id}': a model id has 1 to 128 lower-case letters, digits, '.', '_' or '-', and begins with a letter or digit.`,
    { kind: "misuse" },
  );
}

/** Creates the models directory. A new data directory is accessible to its owner only. */
export async function prepareModelsDirectory(dataDir: string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const directory = modelsDirectory(dataDir);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  return directory;
}

/**
 * Returns all usable models, sorted by id. Skips a model with an unreadable manifest or a missing file, and
 * calls `onSkipped` with the reason.
 */
export async function listModels(
  dataDir: string,
  onSkipped: (manifestPath: string, reason: string) => void = () => {},
): Promise<ModelManifest[]> {
  const directory = modelsDirectory(dataDir);
  const models: ModelManifest[] = [];
  const names = await namesIn(directory);
  if (typeof names === "string") onSkipped(directory, names);
  for (const name of typeof names === "string" ? [] : names) {
    if (!name.endsWith(".json") || name.endsWith(".gguf.part.json")) continue;
    const path = join(directory, name);
    const found = await readManifest(path);
    if (typeof found === "string") onSkipped(path, found);
    else models.push(found);
  }
  return models.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns the manifest of a model, even if its files are missing. Undefined if there is no valid manifest. */
export async function findManifest(dataDir: string, id: string): Promise<ModelManifest | undefined> {
  if (!modelId.safeParse(id).success) return undefined;
  const found = await readManifest(manifestPath(dataDir, id), false);
  return typeof found === "string" ? undefined : found;
}

/** Writes `<id>.json` atomically. `file` may be a path in the models directory. */
export async function saveManifest(dataDir: string, manifest: ModelManifest): Promise<void> {
  await prepareModelsDirectory(dataDir);
  const stored = manifestSchema.parse({
    ...manifest,
    file: basename(manifest.file),
    otherFiles: manifest.otherFiles.map((path) => basename(path)),
  });
  const path = manifestPath(dataDir, manifest.id);
  const temporary = `${path}.${process.pid}.tmp`;
  const handle = await open(temporary, "w", 0o644);
  try {
    await handle.writeFile(`${JSON.stringify(stored, undefined, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  await syncNames(modelsDirectory(dataDir));
}

export function manifestPath(dataDir: string, id: string): string {
  return join(modelsDirectory(dataDir), `${id}.json`);
}

/** Returns the file names in a directory, or the reason if it cannot be read. Empty if there is no directory. */
async function namesIn(directory: string): Promise<string[] | string> {
  try {
    return await readdir(directory);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    return code === "ENOENT" ? [] : `the directory cannot be read (${code})`;
  }
}

/** Returns the manifest, or the reason why it is unusable. */
async function readManifest(path: string, mustHaveFiles = true): Promise<ModelManifest | string> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    return error instanceof SyntaxError ? "it is not valid JSON" : "it cannot be read";
  }
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return `field '${issue?.path.join(".") ?? ""}': ${issue?.message ?? "is wrong"}`;
  }
  const directory = join(path, "..");
  const manifest: ModelManifest = {
    ...parsed.data,
    file: join(directory, parsed.data.file),
    otherFiles: parsed.data.otherFiles.map((name) => join(directory, name)),
  };
  if (basename(path) !== `${manifest.id}.json`) return `its id '${manifest.id}' does not match its file name`;
  for (const file of mustHaveFiles ? [manifest.file, ...manifest.otherFiles] : []) {
    const found = await stat(file).catch(() => undefined);
    if (!found?.isFile()) return `${basename(file)} is missing; pull the model again`;
  }
  return manifest;
}
