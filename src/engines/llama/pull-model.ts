// Downloads a model from the hub: chooses the file, checks the disk, downloads, inspects, and writes the manifest.

import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { wallMs } from "../../base/clock.ts";
import { isDiskFull } from "../../base/disk-full.ts";
import { contentCheck } from "./content-check.ts";
import { requireDiskSpace } from "./disk-space.ts";
import { downloadFile } from "./download.ts";
import type { Hub } from "./hub-request.ts";
import { listHubFiles } from "./hugging-face.ts";
import { inspectModel } from "./inspect-model.ts";
import {
  chooseModel,
  type HubFile,
  type ModelFiles,
  type ModelSource,
  parseModelSource,
  partName,
  partOf,
} from "./model-source.ts";
import {
  checkModelId,
  findManifest,
  type ModelManifest,
  modelIdFrom,
  modelsDirectory,
  prepareModelsDirectory,
  saveManifest,
} from "./model-store.ts";
import { claimPull } from "./pull-lock.ts";
import { SetupError } from "./setup-error.ts";

export interface PullRequest {
  /** The model's name on the hub, as `hf:owner/repo[:file]`. */
  source: string;
  /** The id for the pulled model. Default: the file's name in lower case. */
  name: string | undefined;
  dataDir: string;
  hub: Hub;
  signal: AbortSignal;
}

/** Receives the steps of a pull, in this order. `progress` is called many times. */
export interface PullObserver {
  /** Called with the chosen model. `chosen` is true if the request named no file. */
  selected(model: ModelFiles, id: string, chosen: boolean): void;
  /** Called with the bytes of all parts on disk. The first call counts what an earlier run downloaded. */
  progress(bytes: number): void;
  retrying(reason: string, waitMs: number): void;
  /** Called once the bytes are complete and correct, before the engine reads the file. */
  inspecting(): void;
}

export interface PulledModel {
  manifest: ModelManifest;
  /** True if the same content was on disk already, so that nothing was downloaded. */
  alreadyThere: boolean;
}

/** A model on the hub that a pull would download. */
export interface FoundModel {
  source: ModelSource;
  repository: string;
  model: ModelFiles;
  id: string;
}

/** Finds the model on the hub that `request` names. Rejects with a SetupError, or with the reason of `signal`. */
export async function findModel(request: Omit<PullRequest, "dataDir">): Promise<FoundModel> {
  const source = parseModelSource(request.source);
  const named = request.name === undefined ? undefined : checkModelId(request.name);
  const repository = `${source.owner}/${source.repo}`;
  const files = await listHubFiles(request.hub, source, request.signal);
  const model = chooseModel(files, source.file, repository);
  return { source, repository, model, id: requireNoPart(named ?? modelIdFrom(model.stem)) };
}

/** Pulls a model. Rejects with a SetupError, or with the reason of `signal`. Call it again to resume the download. */
export async function pullModel(request: PullRequest, observer: PullObserver): Promise<PulledModel> {
  const found = await findModel(request);
  observer.selected(found.model, found.id, found.source.file === undefined);
  return await fetchModel(request, found, observer);
}

/** Downloads a model that `findModel` found. Rejects with a SetupError, or with the reason of `signal`. */
export async function fetchModel(
  request: PullRequest,
  found: FoundModel,
  observer: PullObserver,
): Promise<PulledModel> {
  return await explainDiskErrors(async () => {
    const directory = await prepareModelsDirectory(request.dataDir);
    const release = await claimPull(join(directory, `${found.id}.lock`), found.id);
    try {
      return await fetchAndRecord({ request, ...found, directory }, observer);
    } finally {
      await release();
    }
  }, request.dataDir);
}

/** Returns how many bytes of a found model still have to be downloaded. */
export async function missingBytes(dataDir: string, { model, id }: Pick<FoundModel, "model" | "id">): Promise<number> {
  return missingOf(model, targetsOf(modelsDirectory(dataDir), model, id));
}

function targetsOf(directory: string, model: ModelFiles, id: string): string[] {
  return model.parts.map((_, index) => join(directory, localName(id, index, model.parts.length)));
}

async function missingOf(model: ModelFiles, targets: readonly string[]): Promise<number> {
  const present = await Promise.all(targets.map(sizeOf));
  const started = await Promise.all(targets.map((target) => sizeOf(`${target}.part`)));
  const held = model.parts.map((part, i) => (present[i] === part.bytes ? part.bytes : (started[i] ?? 0)));
  return model.bytes - held.reduce((sum, bytes) => sum + bytes, 0);
}

interface Pull extends FoundModel {
  request: PullRequest;
  directory: string;
}

async function fetchAndRecord(pull: Pull, observer: PullObserver): Promise<PulledModel> {
  const { model, id, request } = pull;
  const origin = `hf:${pull.repository}:${model.path}`;
  const earlier = await findManifest(request.dataDir, id);
  if (earlier !== undefined && earlier.source.toLowerCase() !== origin.toLowerCase()) {
    throw new SetupError(`Model ${id} is already here, from ${earlier.source}. Choose another id with --name.`);
  }
  const targets = targetsOf(pull.directory, model, id);
  const { sums, alreadyThere } = await fetchParts(pull, targets, observer);
  observer.inspecting();
  const [first = "", ...others] = targets;
  const inspection = await inspectModel(first, request.signal).catch((error: unknown) => {
    if (!(error instanceof SetupError)) throw error;
    throw new SetupError(`${error.message} It is kept as ${first}, and not served.`, { cause: error });
  });
  const manifest: ModelManifest = {
    id,
    file: first,
    otherFiles: others,
    bytes: model.bytes,
    sha256: sums[0] ?? "",
    source: origin,
    pulledAt: Math.floor(wallMs() / 1000),
    ...(inspection.context ? { context: inspection.context } : {}),
    capabilities: inspection.capabilities,
    tools: inspection.tools,
  };
  await saveManifest(request.dataDir, manifest);
  return { manifest, alreadyThere };
}

async function fetchParts(
  pull: Pull,
  targets: readonly string[],
  observer: PullObserver,
): Promise<{ sums: string[]; alreadyThere: boolean }> {
  const { model, request } = pull;
  await requireDiskSpace(
    pull.directory,
    await missingOf(model, targets),
    "Free some space, choose a smaller file, or another --data-dir.",
  );

  const sums: string[] = [];
  let alreadyThere = true;
  let before = 0;
  for (const [index, file] of model.parts.entries()) {
    const target = targets[index] ?? "";
    const known = await existingSum(target, file, request.signal);
    if (known === undefined) alreadyThere = false;
    sums.push(
      known ??
        (await downloadFile({
          hub: request.hub,
          source: pull.source,
          file,
          target,
          signal: request.signal,
          onBytes: (bytes) => observer.progress(before + bytes),
          onRetry: (reason, waitMs) => observer.retrying(reason, waitMs),
        })),
    );
    before += file.bytes;
    observer.progress(before);
  }
  return { sums, alreadyThere };
}

/**
 * Throws for an id that looks like a part of a split model, because such a file could be confused with a part of
 * another model.
 */
function requireNoPart(id: string): string {
  const part = partOf(id);
  if (!part) return id;
  throw new SetupError(
    `The id ${id} is what a part of a split model ${part.stem} is called. Choose another id with --name.`,
    { kind: "misuse" },
  );
}

function localName(id: string, index: number, count: number): string {
  return `${count === 1 ? id : partName(id, index + 1, count)}.gguf`;
}

/** Returns the SHA-256 of the existing file if it has the wanted content, or undefined. */
async function existingSum(path: string, file: HubFile, signal: AbortSignal): Promise<string | undefined> {
  if ((await sizeOf(path)) !== file.bytes) return undefined;
  const check = contentCheck(file);
  const handle = await open(path, "r");
  try {
    const buffer = new Uint8Array(1024 * 1024);
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) break;
      check.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
  const { sha256, matches } = check.finish();
  return matches ? sha256 : undefined;
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function explainDiskErrors<Result>(work: () => Promise<Result>, dataDir: string): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    if (isDiskFull(error)) {
      throw new SetupError("The disk is full. Free some space and run the same command again: it continues.", {
        cause: error,
      });
    }
    if (code !== undefined && ["EACCES", "EPERM", "EROFS", "EEXIST", "ENOTDIR"].includes(code)) {
      throw new SetupError(`${dataDir} cannot be written to (${code}). Choose another place with --data-dir.`, {
        cause: error,
      });
    }
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
