// Checks the model servers: whether each can be reached, accepts our key, and has the configured models.
import { trimSlashes } from "../base/text/http-url.ts";
import { type CapabilityName, capabilityNames } from "../domain/models/capabilities.ts";
import type { EngineFormats, EngineModel } from "../domain/models/engine.ts";
import { apisOf, speechOf, type UpstreamApi, type UpstreamSpeech } from "../domain/models/upstream-speech.ts";
import { FoundFormats, knownFormats } from "../engines/found-formats.ts";
import { getText, type HttpTarget, httpTarget } from "../engines/http-engine.ts";
import { findLocalServers, knownLocalServers, type LocalServer } from "../engines/local-servers.ts";
import { firstModelsPath, maxListBytes, parseModels } from "../engines/model-list.ts";
import { upstreamKeyContext } from "../inference/models/manage-upstreams.ts";
import { unseal } from "../policy/credentials/sealing.ts";
import { deriveKeys } from "../storage/files/secret-file.ts";
import { SqlUpstreamStore } from "../storage/tables/upstream-store.ts";
import { type AddressProbe, addressFault, codeOf, probeAddress } from "./address-probe.ts";
import { count } from "./configuration.ts";
import { aheadByDate } from "./date-header.ts";
import { missingFor, type SaidCapability } from "./endpoints.ts";
import { once, reasonOf } from "./examine.ts";
import { type Check, type Finding, failure, ok, skipped, warning } from "./finding.ts";
import { certificateFindings } from "./public-url.ts";
import type { Subject } from "./subject.ts";

const answerMs = 5_000;
const maxShown = 5;

export interface KnownServer {
  name: string;
  url: string;
  apiKey: string | undefined;
  speech: UpstreamSpeech;
  httpClient: "own" | "fetch";
  /** Model ids that deployments expect on this server. */
  expected: readonly string[];
  /** The capabilities that the configuration states for models on this server. */
  said: readonly SaidCapability[];
  isStored: boolean;
  /** True if the server's stored key cannot be decrypted. */
  isSealed: boolean;
}

export interface UpstreamProbe {
  server: KnownServer;
  addressProbe: AddressProbe;
  answer: Answer | { error: unknown } | undefined;
  /** Milliseconds by which the server's clock is ahead of this machine's. Undefined if the server does not tell. */
  aheadMs: number | undefined;
}

interface Answer {
  status: number;
  /** The ids in the answer. Undefined if the answer is not a model list. */
  models: readonly string[] | undefined;
  /**
   * The conversation formats that the server supports. Undefined if they were not requested, or the server did not
   * report them.
   */
  formats: EngineFormats | undefined;
  /** Capabilities that the configuration states, but whose paths the server lacks. */
  missing: readonly { said: SaidCapability; paths: readonly string[] }[];
  ms: number;
}

/** The model servers with their probes. All checks share the result of one probe. */
export type UpstreamProbes = readonly { server: KnownServer; probe: (signal: AbortSignal) => Promise<UpstreamProbe> }[];

export function upstreamProbes({ config }: Pick<Subject, "config">): UpstreamProbes {
  const servers = (config?.upstreams ?? []).map((upstream): KnownServer => {
    const { name, url, apiKey, httpClient } = upstream;
    const deployments = config?.models.flatMap((model) => model.deployments) ?? [];
    const expected = deployments.filter(({ upstream }) => upstream === name).map(({ model }) => model);
    const said = capabilityNames.map((capability) => ({ capability, models: ableAt(name, capability, config) }));
    const known = { name, url, apiKey, speech: speechOf(upstream), httpClient };
    return {
      ...known,
      expected: [...new Set(expected)],
      said: said.filter(({ models }) => models.length > 0),
      isStored: false,
      isSealed: false,
    };
  });
  return servers.map((server) => ({ server, probe: sharedProbe(server) }));
}

/**
 * Returns probes of the model servers that operators added over the API. A model server in the configuration file takes
 * precedence over a stored one of the same name.
 */
export async function storedProbes(subject: Subject): Promise<UpstreamProbes> {
  const db = await subject.database().catch(() => undefined);
  if (!db) return [];
  const stored = await new SqlUpstreamStore(db).listUpstreams().catch(() => []);
  const named = new Set(subject.config?.upstreams.map(({ name }) => name));
  return stored
    .filter(({ name }) => !named.has(name))
    .map(({ name, url, sealedApiKey, ...settings }) => {
      const apiKey = sealedApiKey === null ? undefined : opened(subject, { name, url, sealedApiKey });
      const server: KnownServer = {
        ...{
          name,
          url: trimSlashes(url),
          apiKey,
          speech: speechOf(settings),
          httpClient: "own",
          expected: [],
          said: [],
        },
        ...{ isStored: true, isSealed: sealedApiKey !== null && apiKey === undefined },
      };
      return { server, probe: sharedProbe(server) };
    });
}

function opened(
  { secret }: Subject,
  { name, url, sealedApiKey }: { name: string; url: string; sealedApiKey: string },
): string | undefined {
  try {
    const secrets = secret();
    return secrets && unseal(sealedApiKey, deriveKeys(secrets, "upstream-seal-v1"), upstreamKeyContext({ name, url }));
  } catch {
    return undefined;
  }
}

function sharedProbe(server: KnownServer): (signal: AbortSignal) => Promise<UpstreamProbe> {
  let signal: AbortSignal | undefined;
  const probe = once(() => probeServer(server, signal ?? AbortSignal.timeout(answerMs)));
  return (first) => {
    signal ??= first;
    return probe();
  };
}

async function probeServer(server: KnownServer, signal: AbortSignal): Promise<UpstreamProbe> {
  const addressProbe = await probeAddress(server.url, signal);
  if (addressFault(addressProbe, "")) return { server, addressProbe, answer: undefined, aheadMs: undefined };
  const { name, url, apiKey, speech, httpClient } = server;
  const timing = { firstByteTimeoutMs: answerMs, idleTimeoutMs: answerMs };
  const target = httpTarget({ ...{ name, url, apiKey, speech, httpClient }, ...timing });
  const startedMs = performance.now();
  try {
    const { status, date, text } = await getText(target, firstModelsPath(target), maxListBytes, signal);
    const ms = performance.now() - startedMs;
    const aheadMs = aheadByDate(date, Date.now() - ms, Date.now());
    const models = modelsIn(text, speech.api);
    const formats = models && (await formatsOf(server, models, target, signal));
    const missing = models ? await missingOf(server, target, signal) : [];
    const ids = models?.map(({ id }) => id);
    return { server, addressProbe, answer: { status, models: ids, formats, missing, ms }, aheadMs };
  } catch (error) {
    signal.throwIfAborted();
    return { server, addressProbe, answer: { error }, aheadMs: undefined };
  } finally {
    target.client.close();
  }
}

/** Returns the ids of models on this upstream for which the configuration states the capability. */
function ableAt(name: string, capability: CapabilityName, config: Subject["config"]): string[] {
  const able = config?.models.filter(({ capabilities }) => capabilities?.[capability] === true) ?? [];
  const served = able.flatMap(({ deployments }) => deployments.filter(({ upstream }) => upstream === name));
  return [...new Set(served.map(({ model }) => model))];
}

async function missingOf({ said }: KnownServer, target: HttpTarget, signal: AbortSignal): Promise<Answer["missing"]> {
  const probes = await Promise.all(
    said.map(async (one) => ({ said: one, paths: await missingFor(target, one, signal) })),
  );
  return probes.filter(({ paths }) => paths.length > 0);
}

async function formatsOf(
  { url, speech }: KnownServer,
  models: readonly EngineModel[],
  target: HttpTarget,
  signal: AbortSignal,
) {
  const found = new FoundFormats(target, knownFormats(url, speech));
  await found.listed(models, signal);
  return found.formats;
}

function modelsIn(text: string | undefined, api: UpstreamApi): EngineModel[] | undefined {
  try {
    return text === undefined ? undefined : parseModels(text, api);
  } catch {
    return undefined;
  }
}

export function upstreamChecks(
  subject: Subject,
  probes: UpstreamProbes,
  stored: () => Promise<UpstreamProbes>,
): Check[] {
  const { config } = subject;
  if (!config)
    return [{ name: "upstreams", run: () => skipped("upstreams", "not known before the configuration is right") }];
  return [
    ...probes.map(({ server, probe }) => ({ name: server.name, run: async (s: AbortSignal) => judge(await probe(s)) })),
    {
      name: "upstreams of operators",
      run: async (signal: AbortSignal) => {
        const all = await Promise.all((await stored()).map(({ probe }) => probe(signal)));
        return all.flatMap(judge);
      },
    },
    ...(config.discoverLocal ? [{ name: "local servers", run: () => localServers(subject, knownLocalServers) }] : []),
  ];
}

export function judge({ server, addressProbe, answer }: UpstreamProbe): Finding[] {
  const { name } = server;
  const host = new URL(server.url).host;
  const fault = addressFault(addressProbe, host);
  if (fault) return [failure(name, fault.found, fault.remedy)];
  const certificate = addressProbe.at === "there" ? certificateFindings(name, addressProbe.certificate) : [];
  if (server.isSealed) {
    const remedy = "Give it its key again (PATCH /v1/admin/upstreams), or put back the secret.";
    return [failure(name, "its key is sealed under another secret", remedy), ...certificate];
  }
  if (!answer) return certificate;
  if ("error" in answer)
    return [failure(name, `GET ${server.url}/models failed: ${wireReason(answer.error)}`, see(server)), ...certificate];
  const own = [...missingModels(server, answer), ...missingEndpoints(server, answer)];
  return [judgeAnswer(server, answer), ...own, ...certificate];
}

/** Returns why a connection failed, in the words of a library. Text of the server is not included. */
function wireReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasonOf(cause) || codeOf(error);
}

function see({ url }: KnownServer): string {
  return `See its log, and that the URL is right: curl ${url}/models`;
}

function keySetting({ name, isStored }: KnownServer): string {
  return isStored
    ? `the key of ${name}, at the dashboard or PATCH /v1/admin/upstreams/${name}`
    : `api_key of the upstream ${name}, or the variable that it names`;
}

function judgeAnswer(server: KnownServer, { status, models, formats, ms }: Answer): Finding {
  const { name, url, apiKey } = server;
  if (status === 401 || status === 403) {
    const what = apiKey === undefined ? "it wants a key, and none is set" : "it refuses the key";
    return failure(name, `GET ${url}/models answered ${status}: ${what}`, `Set ${keySetting(server)}.`);
  }
  if (status === 404) {
    return failure(
      name,
      `GET ${url}/models answered 404: there is no such path`,
      `The base URL usually ends in /v1, and Anthropic's API wants api: messages: correct the upstream ${name}.`,
    );
  }
  if (status !== 200) return failure(name, `GET ${url}/models answered ${status}`, see(server));
  if (!models)
    return failure(
      name,
      `GET ${url}/models answered no list of models`,
      server.speech.api === "messages"
        ? "Is it Anthropic's API, or a server that has it? Others want api: openai."
        : "Is it an OpenAI-compatible server? The URL usually ends in /v1.",
    );
  const spoken = formats === undefined ? "" : `, ${apisOf(formats).join(", ")}`;
  const shown = `${count(models.length, "model")} in ${Math.round(ms)} ms${spoken}`;
  if (models.length === 0) return warning(name, `${shown}: it serves nothing`, "Load a model there.");
  return ok(name, `${shown}: ${shortList(models)}`);
}

function missingModels({ name, expected }: KnownServer, { models }: Answer): Finding[] {
  if (!models) return [];
  const missing = expected.filter((id) => !models.includes(id));
  if (missing.length === 0) return [];
  return [
    warning(
      `${name} models`,
      `configured, and not in its list: ${shortList(missing)}`,
      "Correct model of the deployment, or load the model there. Some servers list less than they serve.",
    ),
  ];
}

function missingEndpoints({ name, url }: KnownServer, { missing }: Answer): Finding[] {
  return missing.map(({ said: { capability, models }, paths }) =>
    warning(
      `${name} ${capability}`,
      `said of ${shortList(models)}, and ${url} has no ${paths.join(" or ")}`,
      `Start the server with it, or set capabilities: { ${capability}: false } of the model: then it is refused before anybody is asked.`,
    ),
  );
}

function shortList(ids: readonly string[]): string {
  return ids.slice(0, maxShown).join(", ") + (ids.length > maxShown ? ", …" : "");
}

async function localServers({ config }: Subject, servers: readonly LocalServer[]): Promise<Finding[]> {
  const found = await findLocalServers(servers, config?.port ?? 0);
  const served = config?.mode === "development";
  return found.map(({ title, url, models }) => {
    if (!models) return warning(title, `${url} wants a key`, "Name it under upstreams, with its api_key.");
    const how = served ? "served as it was found" : "not served in production unless it is named under upstreams";
    return ok(title, `${url}, ${count(models.length, "model")}; ${how}`);
  });
}
