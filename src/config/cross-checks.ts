// Checks entries of headrace.yaml against each other, and finds settings that deserve a warning.

import { parseHttpUrl } from "../base/text/http-url.ts";
import { quotaFault } from "../domain/limits/quota-rules.ts";
import { builtInEngineName, fileEngineName } from "../domain/models/engine.ts";
import { aliasFaults, deploymentFaults, type EntryFault, fallbackFaults } from "../domain/models/model-entry.ts";
import { policyFaults } from "../domain/models/policies/policy-faults.ts";
import { policiesFromWire } from "../domain/models/policies/policy-text.ts";
import { speechFault } from "../domain/models/upstream-speech.ts";
import { listedPriceFault } from "../prices/price-list.ts";
import { duplicateFaults } from "./field.ts";
import { type FileData, retentionDefaults } from "./file-schema.ts";
import { type Path, renderPath } from "./paths.ts";
import { type Problem, renderLocation } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";
import { featureFaults } from "./sections/feature-sections.ts";
import { mcpServerFault } from "./sections/tool-schema.ts";

export function crossProblems(file: YamlFile, data: FileData): Problem[] {
  return [
    ...[
      ...duplicateFaults("upstreams", "name", data.upstreams),
      ...duplicateFaults("models", "id", data.models),
      ...duplicateFaults("tiers", "name", data.tiers),
      ...featureFaults(data),
    ].map(({ path, message, fix }) => problemAt(file, path, message, fix)),
    ...toolProblems(file, data),
    ...quotaProblems(file, data),
    ...reservedNames(file, data),
    ...commandProblems(file, data),
    ...fileProblems(file, data),
    ...speechProblems(file, data),
    ...referenceProblems(file, data),
    ...originProblems(file, data.cors.origins),
    ...retentionProblems(file, data),
    ...filesProblems(file, data),
  ];
}

/** Checks what models refer to: their deployments, fallbacks and aliases. */
export function referenceProblems(file: YamlFile, data: FileData): Problem[] {
  const aliasOwners = firstOwners(data);
  return data.models.flatMap((_, index) => modelProblems(file, data, index, aliasOwners));
}

function filesProblems(file: YamlFile, { files }: FileData): Problem[] {
  if (files.directory === undefined || !files.s3) return [];
  return [problemAt(file, ["files", "directory"], "cannot be set together with s3", "Keep one of them.")];
}

/**
 * Requires that hourly usage is kept at least as long as requests, because a request is found through the hourly usage.
 */
function retentionProblems(file: YamlFile, { retention }: FileData): Problem[] {
  const { hourly_usage_days: hourly, requests_days: requests = retentionDefaults.requests } = retention;
  if (hourly == null || (requests !== null && requests <= hourly)) return [];
  const message =
    requests === null
      ? "must be null, as single requests are kept for good"
      : `must be at least requests_days, which is ${requests}`;
  const fix = `Give a larger number, or set requests_days to ${hourly}.`;
  return [problemAt(file, ["retention", "hourly_usage_days"], message, fix)];
}

function problemAt(file: YamlFile, path: Path, message: string, fix: string): Problem {
  return { ...file.locate(path), path: renderPath(path), message, fix };
}

function toolProblems(file: YamlFile, { tools: { servers } }: FileData): Problem[] {
  return servers.flatMap(({ name }, index) => {
    const first = servers.findIndex((server) => server.name === name);
    const at = (member: string, message: string, fix: string) =>
      problemAt(file, ["tools", "servers", index, member], message, fix);
    const fault = mcpServerFault(servers[index] as (typeof servers)[number]);
    return [
      ...(first === index
        ? []
        : [at("name", `is the same as tools.servers[${first}].name`, "Give each its own name.")]),
      ...(fault ? [at(fault.at, fault.message, fault.fix)] : []),
    ];
  });
}

function quotaProblems(file: YamlFile, data: FileData): Problem[] {
  return data.tiers.flatMap(({ quotas }, tier) => {
    const fault = quotaFault(quotas);
    if (!fault) return [];
    return [
      problemAt(
        file,
        ["tiers", tier, "quotas", fault.at, fault.field],
        fault.must,
        "Change it, or leave the quota out.",
      ),
    ];
  });
}

function reservedNames(file: YamlFile, data: FileData): Problem[] {
  return data.upstreams.flatMap((upstream, index) => {
    if (upstream.name !== builtInEngineName) return [];
    const message = `must not be ${builtInEngineName}, which is the built-in engine`;
    return [problemAt(file, ["upstreams", index, "name"], message, "Give the upstream another name.")];
  });
}

/**
 * Rejects a model file that two entries name, an engine name that an upstream or command has, and a draft model that is
 * the model itself.
 */
function fileProblems(file: YamlFile, data: FileData): Problem[] {
  const seen = new Set<string>();
  const names = [...data.upstreams, ...(data.engine?.commands ?? [])].map(({ name }) => name);
  return (data.engine?.files ?? []).flatMap(({ model, draft, engine }, index) => {
    const at = (key: string) => ["engine", "files", index, key];
    const twice = seen.has(model);
    seen.add(model);
    return [
      ...(twice ? [problemAt(file, at("model"), "is the model of another entry", "Leave one of them out.")] : []),
      ...(names.includes(fileEngineName(engine, model))
        ? [
            problemAt(
              file,
              at("model"),
              `gives an engine the name ${fileEngineName(engine, model)}, which an upstream or command has`,
              "Give the upstream or command another name.",
            ),
          ]
        : []),
      ...(draft === model
        ? [problemAt(file, at("draft"), "is the model itself", "Give a smaller model of the same vocabulary.")]
        : []),
    ];
  });
}

/** Rejects a command whose name an upstream already has. Both are engines, so their names must differ. */
function commandProblems(file: YamlFile, data: FileData): Problem[] {
  const commands = data.engine?.commands ?? [];
  const taken = [builtInEngineName, ...data.upstreams.map(({ name }) => name)];
  return commands.flatMap(({ name, api, apis = null, memory, asleep_gpu }, index) => {
    const path = ["engine", "commands", index];
    const problems: Problem[] = [];
    const report = (key: string, message: string, fix: string) =>
      problems.push(problemAt(file, [...path, key], message, fix));
    if (taken.includes(name))
      report("name", "is the name of another engine or upstream", "Give the command another name.");
    taken.push(name);
    const fault = speechFault({ api, apis });
    if (fault) report("apis", fault.message, fault.fix);
    if (asleep_gpu && !memory) {
      report("asleep_gpu", "needs memory", "Set memory to what the command uses while it is awake.");
    }
    return problems;
  });
}

/** Maps each alias to the index of the first model with this alias. */
function firstOwners({ models }: FileData): ReadonlyMap<string, number> {
  const owners = new Map<string, number>();
  for (const [index, { aliases }] of models.entries()) {
    for (const alias of aliases) if (!owners.has(alias)) owners.set(alias, index);
  }
  return owners;
}

function speechProblems(file: YamlFile, data: FileData): Problem[] {
  return data.upstreams.flatMap(({ api, apis = null }, index) => {
    const fault = speechFault({ api, apis });
    return fault ? [problemAt(file, ["upstreams", index, "apis"], fault.message, fault.fix)] : [];
  });
}

/** Returns the names that a deployment may give as `upstream`. */
function upstreamNames(data: FileData): string[] {
  const commands = [
    ...(data.engine?.commands ?? []).map(({ name }) => name),
    ...(data.engine?.files ?? []).map(({ model, engine }) => fileEngineName(engine, model)),
  ];
  return [...data.upstreams.map((upstream) => upstream.name), ...commands, builtInEngineName];
}

/** Returns problems of a model's entry: contradictions within the entry or with the rest of the file. */
function modelProblems(
  file: YamlFile,
  data: FileData,
  index: number,
  aliasOwners: ReadonlyMap<string, number>,
): Problem[] {
  const model = data.models[index];
  if (!model) return [];
  const capabilitiesOf = (id: string) => data.models.find((other) => other.id === id)?.capabilities;
  const ownerOf = (alias: string) => {
    const owner = aliasOwners.get(alias) ?? index;
    return owner === index ? undefined : data.models[owner]?.id;
  };
  return [
    ...deploymentFaults(model.id, model.deployments, upstreamNames(data)),
    ...fallbackFaults(model, capabilitiesOf),
    ...aliasFaults(model, ownerOf),
    ...priceOfFaults(model.price_of),
    ...policyFaultsOf(data, model),
  ].map(({ path, message, fix }) => problemAt(file, ["models", index, ...path], message, fix));
}

/** Returns faults of a model's policies. Only guardrails and models of this file count as existing. */
function policyFaultsOf(data: FileData, { policies, ...model }: FileData["models"][number]): EntryFault[] {
  const wanted = policies && policiesFromWire(policies);
  if (!wanted) return [];
  return policyFaults(model, wanted, {
    guardrails: data.guardrails.map(({ name }) => name),
    capabilitiesOf: (id) => data.models.find((other) => other.id === id)?.capabilities,
    priceFault: listedPriceFault,
  });
}

function priceOfFaults(name: string | undefined): EntryFault[] {
  const fault = name === undefined ? undefined : listedPriceFault(name);
  return fault ? [{ path: ["price_of"], ...fault }] : [];
}

function originProblems(file: YamlFile, origins: readonly string[]): Problem[] {
  if (!origins.includes("*") || origins.length === 1) return [];
  const fix = 'Keep "*" alone, or remove it and keep the exact origins.';
  return [problemAt(file, ["cors", "origins"], 'names origins beside "*", which already allows every one', fix)];
}

/** Returns the ids of other models that an entry refers to, each with its path in the entry. */
function namedModels({ fallbacks, policies }: FileData["models"][number]): { path: Path; id: string }[] {
  const { cache, shadow, split = [] } = policies ?? {};
  return [
    ...fallbacks.map((id, at) => ({ path: ["fallbacks", at], id })),
    ...(cache?.semantic ? [{ path: ["policies", "cache", "semantic", "model"], id: cache.semantic.model }] : []),
    ...(shadow ? [{ path: ["policies", "shadow", "model"], id: shadow.model }] : []),
    ...split.map(({ model: id }, at) => ({ path: ["policies", "split", at, "model"], id })),
  ];
}

/** Returns the warnings to print at start and at reload. */
export function warningsOf(file: YamlFile, data: FileData): string[] {
  const warnings: string[] = [];
  const warn = (path: Path, message: string) =>
    warnings.push(`${renderLocation({ ...file.locate(path), path: renderPath(path) })}${message}`);
  for (const [index, upstream] of data.upstreams.entries()) {
    const url = parseHttpUrl(upstream.url);
    if (upstream.api === "openai" && url?.pathname === "/") {
      warn(["upstreams", index, "url"], "has no path; the base URL of an OpenAI-compatible server usually ends in /v1");
    }
    if (upstream.api === "openai" && url?.hostname === "api.anthropic.com") {
      warn(["upstreams", index, "url"], "is Anthropic's own API; set api: messages to use all of it");
    }
    const deployed = data.models.some((model) => model.deployments.some((one) => one.upstream === upstream.name));
    if (!upstream.discover && !deployed) {
      warn(["upstreams", index], "serves nothing: discover is false and no model has a deployment on it");
    }
  }
  const ids = new Set(data.models.map(({ id }) => id));
  for (const [index, model] of data.models.entries()) {
    for (const { path, id } of namedModels(model)) {
      if (ids.has(id) || data.upstreams.some(({ discover }) => discover)) continue;
      warn(["models", index, ...path], "is not a model of this file, and no upstream has discover: true");
    }
    for (const [at, { upstream }] of (model.policies?.overflow?.to ?? []).entries()) {
      if (model.deployments.length > 0 || upstreamNames(data).includes(upstream)) continue;
      warn(["models", index, "policies", "overflow", "to", at], "names no upstream of this file");
    }
    for (const [at, alias] of model.aliases.entries()) {
      if (!ids.has(alias)) continue;
      warn(["models", index, "aliases", at], "has no effect: it is the id of another model, which gets the requests");
    }
  }
  return warnings;
}
