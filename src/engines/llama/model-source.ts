// Parses `hf:` names, and chooses which GGUF file of a Hugging Face repository to download.
import { formatBytes } from "./byte-size.ts";
import { SetupError } from "./setup-error.ts";

/** The parts of `hf:owner/repo[:file]`. `file` is a path in the repository or a quantization such as `Q8_0`. */
export interface ModelSource {
  owner: string;
  repo: string;
  file: string | undefined;
}

/** A file as the hub lists it. */
export interface HubFile {
  /** The path inside the repository. */
  path: string;
  bytes: number;
  /** The expected hash: SHA-256 of a file in large-file storage, or git's blob SHA-1 of any other file. */
  checksum: { algorithm: "sha256" | "git-blob"; hex: string };
}

/** A model: a single GGUF file, or all parts of a split model in order. */
export interface ModelFiles {
  quantization: string | undefined;
  /** Path of the only or first part. */
  path: string;
  /** File name without `.gguf` and without the part number. */
  stem: string;
  parts: readonly HubFile[];
  bytes: number;
}

const example = "hf:Qwen/Qwen3-0.6B-GGUF or hf:Qwen/Qwen3-0.6B-GGUF:Q8_0";
// The characters that the hub allows in names of owners and repositories.
const sourcePattern = /^hf:([A-Za-z0-9][\w.-]*)\/([A-Za-z0-9][\w.-]*)(?::(.+))?$/;
/** The end of the name of a split model's part. llama.cpp expects exactly this form. */
const splitPattern = /-(\d{5})-of-(\d{5})$/;
const quantizationPattern =
  /(?:^|[-._])((?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|FP16|F32|FP32))(?=$|[-._])/gi;

/**
 * The preferred files, in order, if the user names none. Q4_K_M balances size and quality; next come the nearest
 * sizes, smaller first.
 */
export const preferredQuantizations: readonly string[] = [
  "Q4_K_M",
  "Q5_K_M",
  "Q4_0",
  "Q8_0",
  "Q4_K_S",
  "Q5_K_S",
  "Q6_K",
  "IQ4_XS",
  "Q3_K_M",
  "Q4_1",
  "MXFP4",
  "F16",
  "BF16",
];

/**
 * Parses `hf:owner/repo[:file]`, or the address of a page on the hub. Throws a SetupError (misuse) for any other
 * text.
 */
export function parseModelSource(text: string): ModelSource {
  const match = sourcePattern.exec(fromPage(text));
  const [, owner, repo, file] = match ?? [];
  if (owner === undefined || repo === undefined) throw new SetupError(noSource(text), { kind: "misuse" });
  return { owner, repo, file };
}

/** Converts `https://huggingface.co/owner/repo/blob/main/file` and `hf.co/owner/repo:file` to the form with `hf:`. */
function fromPage(text: string): string {
  const page = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/([^?#]+?)\/*(?:[?#].*)?$/i.exec(text)?.[1];
  if (page === undefined) return text;
  return `hf:${page.replace(/\/(?:blob|resolve)\/main\//, ":").replace(/\/tree\/main$/, "")}`;
}

function noSource(text: string): string {
  if (/^[./~]|^[a-z]:\\/i.test(text) || isModelFile(text)) {
    return `'${text}' is a file of this machine, and needs no pull. Serve it with headrace serve --model ${text}`;
  }
  if (/^[a-z0-9][\w.-]*(?::[\w.-]+)?$/i.test(text) && !/^hf:/.test(text)) {
    const [name = ""] = text.split(":");
    return (
      `'${text}' names no model of Hugging Face, from where Headrace pulls. Search https://huggingface.co/models?search=${name}+gguf ` +
      `and pull hf:owner/repo, such as ${example}. What an Ollama on this machine has is served without a pull.`
    );
  }
  return `'${text}' names no model. Use hf:owner/repo or hf:owner/repo:file, such as ${example}.`;
}

/**
 * Returns the quantization in a file name, in capitals: `UD-Q4_K_XL`, `Q8_0`, `F16`. Undefined if the name has
 * none.
 */
export function quantizationOf(stem: string): string | undefined {
  return [...stem.matchAll(quantizationPattern)].at(-1)?.[1]?.toUpperCase();
}

/** Parses the name of a split model's part, without `.gguf`. Undefined for any other name. */
export function partOf(name: string): { stem: string; index: number; count: number } | undefined {
  const match = splitPattern.exec(name);
  return match ? { stem: name.slice(0, match.index), index: Number(match[1]), count: Number(match[2]) } : undefined;
}

export function partName(stem: string, index: number, count: number): string {
  return `${stem}-${String(index).padStart(5, "0")}-of-${String(count).padStart(5, "0")}`;
}

/** Groups the `.gguf` files of a listing into models. Projectors (mmproj) and importance matrices are skipped. */
export function modelsAmong(files: readonly HubFile[]): ModelFiles[] {
  const groups = new Map<string, HubFile[]>();
  for (const file of files) {
    if (!isModelFile(file.path)) continue;
    const stem = file.path.slice(0, -".gguf".length);
    const part = partOf(stem);
    // The key cannot equal that of a whole file, because no file name ends with a slash.
    const key = part ? `${part.stem}-of-${part.count}/` : stem;
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
  return [...groups.values()].map(toModel).sort((a, b) => compareText(a.path, b.path));
}

/**
 * Returns the model that `wanted` names by path, file name or quantization. If undefined, returns the preferred
 * one. Throws a SetupError that lists the models if none or several match.
 */
export function chooseModel(files: readonly HubFile[], wanted: string | undefined, repository: string): ModelFiles {
  const models = modelsAmong(files);
  if (models.length === 0) {
    throw new SetupError(
      `${repository} holds no .gguf file. Look for a repository of the same model whose name ends in -GGUF.`,
    );
  }
  const chosen = wanted === undefined ? preferred(models, repository) : named(models, wanted, repository);
  const expected = partOf(chosen.path.slice(0, -".gguf".length))?.count ?? 1;
  if (chosen.parts.length !== expected) {
    throw new SetupError(
      `${repository} is incomplete: ${chosen.path} is one of ${expected} parts, and only ${chosen.parts.length} are there. Choose another file:\n${choices(models)}`,
    );
  }
  return chosen;
}

function preferred(models: readonly ModelFiles[], repository: string): ModelFiles {
  for (const quantization of preferredQuantizations) {
    const fitting = models.filter((model) => model.quantization === quantization);
    if (fitting.length > 0) return only(fitting, undefined, repository);
  }
  const [first] = models;
  if (first === undefined) throw new RangeError("No model to choose from.");
  return first;
}

function named(models: readonly ModelFiles[], wanted: string, repository: string): ModelFiles {
  const lower = wanted.toLowerCase();
  const tests: ((model: ModelFiles) => boolean)[] = [
    (model) => model.parts.some((part) => part.path === wanted),
    (model) => model.parts.some((part) => [part.path, fileName(part.path)].some((p) => p.toLowerCase() === lower)),
    (model) => model.stem.toLowerCase() === lower,
    (model) => model.quantization === wanted.toUpperCase(),
  ];
  for (const test of tests) {
    const fitting = models.filter(test);
    if (fitting.length > 0) return only(fitting, wanted, repository);
  }
  throw new SetupError(`${repository} has no GGUF file '${wanted}'. It has:\n${choices(models)}`);
}

function only(fitting: readonly ModelFiles[], wanted: string | undefined, repository: string): ModelFiles {
  const [first, second] = fitting;
  if (first === undefined) throw new RangeError("No model to choose from.");
  if (second === undefined) return first;
  const what = wanted === undefined ? `${first.quantization} files` : `files that '${wanted}' could mean`;
  throw new SetupError(`${repository} has several ${what}. Name one:\n${choices(fitting, repository)}`);
}

/** Returns one line per model, with what to write after `hf:owner/repo:` and the size. */
function choices(models: readonly ModelFiles[], repository?: string): string {
  const prefix = repository === undefined ? "" : `hf:${repository}:`;
  const width = Math.max(...models.map((model) => model.path.length));
  return models
    .map((model) => {
      const parts = model.parts.length > 1 ? `, ${model.parts.length} parts` : "";
      return `  ${prefix}${model.path.padEnd(width)}  ${formatBytes(model.bytes)}${parts}`;
    })
    .join("\n");
}

function toModel(files: HubFile[]): ModelFiles {
  const parts = [...files].sort((a, b) => compareText(a.path, b.path));
  const path = parts[0]?.path ?? "";
  const name = fileName(path).slice(0, -".gguf".length);
  const stem = partOf(name)?.stem ?? name;
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  // Some repositories name the quantization only in the folder.
  const quantization = quantizationOf(stem) ?? quantizationOf(path.slice(0, -fileName(path).length - 1));
  return { quantization, path, stem, parts, bytes };
}

function isModelFile(path: string): boolean {
  const name = fileName(path).toLowerCase();
  return name.endsWith(".gguf") && !/(^|[-_.])(mmproj|imatrix)([-_.]|$)/.test(name);
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
