// Reads the documents of `headrace apply` from YAML files, and finds the line that an error of the server is about.
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { renderLocation, renderProblem, type SourceLocation } from "../../config/problems.ts";
import { readYamlDocuments, type YamlFile } from "../../config/read-yaml.ts";
import { ApiError } from "../login/api-request.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError } from "../terminal/terminal.ts";

export interface ReadDocument {
  document: { kind: string; name: string; spec: Record<string, unknown> };
  yaml: YamlFile;
  /** The file for the object's own secret. */
  secretTo?: string;
}

const members = ["kind", "name", "spec", "secret_to"] as const;

/** Matches a path with a hidden part, such as the copy of each file in a mounted ConfigMap of Kubernetes. */
const hidden = /(?:^|[\\/])\./;

/** Reads all documents of the files, and of all YAML files in the directories. `-` is standard input. */
export async function readDocuments(context: CliContext, paths: readonly string[]): Promise<ReadDocument[]> {
  const files = (await Promise.all(paths.map(filesAt))).flat();
  const texts = await Promise.all(
    files.map(async (path) => ({ path, text: await (path === "-" ? context.input.readAll() : textAt(path)) })),
  );
  const yamls = texts.flatMap(({ path, text }) =>
    readYamlDocuments(text, path, context.env).map((yaml) => ({ yaml, folder: path === "-" ? "." : dirname(path) })),
  );
  const problems = yamls.flatMap(({ yaml }) => yaml.problems.map(renderProblem));
  if (problems.length > 0) throw new CliError(problems.join("\n"));
  const documents = yamls.map(({ yaml, folder }) => documentOf(yaml, folder));
  if (documents.length > 0) return documents;
  throw new CliError(`There is no document in ${paths.join(", ")}. headrace export prints the documents of a server.`);
}

async function filesAt(path: string): Promise<string[]> {
  if (path === "-" || !(await stat(path).catch(unreadable(path))).isDirectory()) return [path];
  const names = await readdir(path, { recursive: true }).catch(unreadable(path));
  return names
    .filter((name) => /\.ya?ml$/.test(name) && !hidden.test(name))
    .sort()
    .map((name) => join(path, name));
}

const textAt = (path: string) => readFile(path, "utf8").catch(unreadable(path));

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    throw new CliError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`);
  };
}

function documentOf(yaml: YamlFile, folder: string): ReadDocument {
  const { data } = yaml;
  const isMapping = typeof data === "object" && data !== null && !Array.isArray(data);
  const wrong = isMapping ? Object.keys(data).find((key) => !members.some((member) => member === key)) : undefined;
  if (wrong !== undefined) throw problem(yaml.locateKey([], wrong), "is no member of a document");
  const { kind, name, spec = {}, secret_to: secretTo } = { ...(isMapping ? data : {}) } as Record<string, unknown>;
  if (typeof kind !== "string") throw problem(yaml.locate(["kind"]), "is required and must be a text", "kind");
  if (typeof name !== "string") throw problem(yaml.locate(["name"]), "is required and must be a text", "name");
  if (secretTo !== undefined && typeof secretTo !== "string")
    throw problem(yaml.locate(["secret_to"]), "must be a path");
  const endless = endlessIn(spec, ["spec"]);
  if (endless) {
    const location = yaml.locate(endless);
    throw problem(location, "must be a finite number", location.path, "Write null if there is to be no limit.");
  }
  if (typeof spec === "object" && spec !== null && !Array.isArray(spec)) {
    const document = { kind, name, spec: spec as Record<string, unknown> };
    return { document, yaml, ...(secretTo === undefined ? {} : { secretTo: resolve(folder, secretTo) }) };
  }
  throw problem(yaml.locate(["spec"]), "must be a mapping of the object's settings");
}

/** Returns the path of an infinite number or a NaN. JSON would have null in its place, which means no limit. */
function endlessIn(value: unknown, path: (string | number)[]): (string | number)[] | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : path;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, one] of Object.entries(value)) {
    const found = endlessIn(one, [...path, Array.isArray(value) ? Number(key) : key]);
    if (found) return found;
  }
  return undefined;
}

const documentFix = "A document has kind, name and spec, and may have secret_to.";

function problem(location: SourceLocation, message: string, path = location.path, fix = documentFix): CliError {
  return new CliError(renderProblem({ ...location, path, message, fix }));
}

/** Runs a request with the documents. An error of the server about a document begins with its file and line. */
export async function located<Result>(documents: readonly ReadDocument[], request: Promise<Result>): Promise<Result> {
  try {
    return await request;
  } catch (error) {
    const [, index, place = "", said] =
      /^documents\[(\d+)\]((?:\.[^.[\]: ]+|\[\d+\])*): (.*)$/s.exec(
        (error instanceof ApiError && error.reason) || "",
      ) ?? [];
    const yaml = documents[Number(index)]?.yaml;
    if (!yaml || said === undefined) throw error;
    const path = [...place.matchAll(/\.([^.[\]]+)|\[(\d+)\]/g)].map(([, key, at]) => key ?? Number(at));
    throw new CliError(`${renderLocation(locationOf(yaml, path))}${said}`);
  }
}

/**
 * Returns the line of a value. For a named member, this is the line of its key, because the value may span several
 * lines.
 */
function locationOf(yaml: YamlFile, path: (string | number)[]): SourceLocation {
  const last = path.at(-1);
  return typeof last === "string" ? yaml.locateKey(path.slice(0, -1), last) : yaml.locate(path);
}
