// Runs the tools that read what is in deploy/, each as its users do, and gives what they said.
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { deployTools } from "../../scripts/test-programs.mjs";

export const root = join(import.meta.dir, "../..");
export const deploy = join(root, "deploy");

// biome-ignore lint/suspicious/noExplicitAny: files of others' formats, of which a few members are looked at.
export type Yaml = any;

export interface Said {
  code: number;
  /** What it wrote, as text. */
  stdout: string;
  stderr: string;
}

/** Runs a program to its end, with `input` on its standard input. */
export async function run(
  command: readonly string[],
  { input = "", env = {}, cwd = root }: { input?: string; env?: Record<string, string>; cwd?: string } = {},
): Promise<Said> {
  const child = Bun.spawn([...command], {
    ...{ cwd, env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env } },
    ...{ stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" },
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, stdout, stderr };
}

/** The standard output of a program that must not fail. */
export async function output(...args: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(...args);
  if (code !== 0) throw new Error(`\`${args[0].join(" ")}\` ended with ${code}:\n${stderr}`);
  return stdout;
}

/** All documents of a text of YAML that are something. */
export function documents(text: string): Yaml[] {
  return parseAllDocuments(text, { merge: true })
    .map((document) => document.toJS())
    .filter((one) => one !== null);
}

/** What deploy/kubernetes applies. */
export const plainManifests = (): Promise<string> =>
  output([deployTools.kubectl, "kustomize", join(deploy, "kubernetes")]);

/** What the schema of a version of Kubernetes finds wrong with manifests; unknown members are wrong, too. */
export async function complaints(manifests: string, version: string): Promise<string> {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, "manifests.yaml");
  await Bun.write(file, manifests);
  const command = [deployTools.python, "-m", "kubernetes_validate", "--strict", "--quiet", "-k", version, file];
  const { code, stdout, stderr } = await run(command);
  const said = `${stdout}${stderr}`.replaceAll(file, "").trim();
  if ((code === 0) !== (said === "")) throw new Error(`kubernetes_validate ended with ${code}, and said: ${said}`);
  return said;
}

/** A directory that is gone at the end of the block. */
export async function temporaryDirectory(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(process.env["TMPDIR"] ?? "/tmp", "headrace-deploy-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
