// Checks the built-in engine: whether its library is installed, and whether its models' files can be read.
import { accessSync, constants, existsSync } from "node:fs";
import { basename, join } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import {
  currentPlatform,
  defaultInstallComputes,
  installedEngine,
  libraryVersion,
  listBackends,
} from "../engines/llama/engine-backends.ts";
import { listModels } from "../engines/llama/model-store.ts";
import { demoModelFile } from "../installation/paths.ts";
import { checkModelFiles } from "../server/built-in-models.ts";
import { count } from "./configuration.ts";
import { withoutStop } from "./examine.ts";
import { type Check, type Finding, failure, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

export function engineChecks({ config, env }: Pick<Subject, "config" | "env">): Check[] {
  if (!config) return [];
  return [
    { name: "engine", run: () => engine(config) },
    { name: "models", run: () => models(config) },
    ...(config.engine.files.length > 0 ? [{ name: "llama-server", run: () => llamaServer(config, env) }] : []),
  ];
}

async function engine({ dataDir }: Config): Promise<Finding[]> {
  const [installed, all] = await Promise.all([installedEngine(dataDir), listBackends(dataDir)]);
  const old = all
    .filter(({ version }) => version !== libraryVersion)
    .map(({ backend, version }) =>
      warning(
        "engine",
        `the back-end ${backend} is of version ${version}, and ${libraryVersion} is needed`,
        `headrace engine install ${backend}`,
      ),
    );
  if (installed) {
    const device = installed.gpu === false ? "the processor computes" : `${installed.gpu} computes`;
    return [ok("engine", `${installed.backend} ${libraryVersion} is installed; ${device}`), ...old];
  }
  if (defaultInstallComputes(currentPlatform()))
    return [ok("engine", `llama.cpp of node-llama-cpp ${libraryVersion}, on the processor`), ...old];
  const remedy =
    "headrace engine install cpu, where there is one: for musl (Alpine) there is none. Models of upstreams do without it.";
  return [warning("engine", `there is no engine for ${currentPlatform()}`, remedy), ...old];
}

function llamaServer({ engine: { files } }: Config, env: Subject["env"]): Finding {
  const path = Bun.which("llama-server", { PATH: env["PATH"] ?? "" });
  if (path !== null) return ok("llama-server", `${path} runs ${count(files.length, "file")}`);
  const remedy = "Install llama.cpp for the user who runs the server, or leave out engine.files.";
  return failure("llama-server", "llama-server is not on the PATH, and engine.files names it", remedy);
}

async function models(config: Config): Promise<Finding[]> {
  const findings = configured(config);
  const skippedFiles: Finding[] = [];
  const pulled = await listModels(config.dataDir, (file, reason) => {
    const remedy = "Pull it again (headrace pull), or delete the file.";
    skippedFiles.push(warning("models", `${basename(file)} is left out: ${withoutStop(reason)}`, remedy));
  });
  const files = [
    ...(config.engine.demo ? [demoModelFile] : []),
    ...config.engine.models,
    ...pulled.flatMap(({ file, otherFiles }) => [file, ...otherFiles]),
  ];
  const locked = files.filter((file) => existsSync(file) && !isReadable(file));
  findings.push(...skippedFiles);
  for (const file of locked) {
    findings.push(
      failure("models", `${file} may not be read`, `Let the user who runs the server read it: chmod a+r ${file}`),
    );
  }
  if (config.engine.demo && !existsSync(demoModelFile)) {
    findings.push(
      failure(
        "models",
        "the demo model is missing from the installation",
        `Install Headrace again, or start with --no-demo: ${join("models", "tiny-demo")}`,
      ),
    );
  }
  if (findings.length > 0) return findings;
  const parts = [
    ...(config.engine.demo ? ["the demo model"] : []),
    ...(config.engine.models.length > 0 ? [count(config.engine.models.length, "file")] : []),
    ...(pulled.length > 0
      ? [`${count(pulled.length, "model")} that ${pulled.length === 1 ? "was" : "were"} pulled`]
      : []),
  ];
  return [ok("models", parts.length === 0 ? "none of its own" : parts.join(", "))];
}

function configured(config: Config): Finding[] {
  try {
    checkModelFiles(config);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ path, message, fix }) => failure("models", `${path}: ${message}`, fix));
  }
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
