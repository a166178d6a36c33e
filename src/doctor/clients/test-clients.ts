// Tests a running server with the requests of the OpenAI SDKs, one after another and with few tokens.
import { cleaned, runCheck } from "../examine.ts";
import { type Finding, failure, type GroupReport, skipped } from "../finding.ts";
import { withoutSecrets } from "../redaction.ts";
import { chatChecks } from "./chat-checks.ts";
import { asCheck, type ClientCheck, type Surroundings } from "./client-check.ts";
import { embeddingChecks } from "./embedding-checks.ts";
import { credentialChecks, errorChecks, modelChecks } from "./model-checks.ts";
import { type Model, modelList } from "./shapes.ts";
import { streamChecks } from "./stream-checks.ts";
import { Wire } from "./wire.ts";

export interface ClientTestOptions {
  /** The URL with `/v1`. */
  baseUrl: string;
  /** A secret. */
  apiKey: string;
  /** True if the credential is an API key, false if it is an access token. */
  isKey: boolean;
  /** The model to test. If undefined, the demo model is tested, or else the first model that chats. */
  model: string | undefined;
  signal: AbortSignal;
  onGroup?: (report: GroupReport) => void;
  onWaiting?: (names: readonly string[]) => void;
}

export interface ClientTest {
  /** The tested model; undefined if there is none. */
  model: string | undefined;
  reports: readonly GroupReport[];
  requests: number;
  tokens: number;
}

const demoId = "tiny-demo";

/** Tests a server. Rejects only with the reason of `signal`. */
export async function testClients(options: ClientTestOptions): Promise<ClientTest> {
  const { baseUrl, apiKey, isKey, signal, onGroup, onWaiting } = options;
  const wire = new Wire({ baseUrl, apiKey });
  const clean = withoutSecrets([apiKey]);
  const reports: GroupReport[] = [];
  const report = (title: string, findings: readonly Finding[]) => {
    if (findings.length === 0) return;
    const report = { title, findings: findings.map((finding) => cleaned(finding, clean)) };
    reports.push(report);
    onGroup?.(report);
  };
  const end = (model: string | undefined) => ({ model, reports, requests: wire.requests, tokens: wire.tokens });

  const found = await modelsOf(wire, signal);
  if ("fault" in found) {
    report("Models", [found.fault]);
    return end(undefined);
  }
  const chosen = choose(found.models, options.model);
  if ("fault" in chosen) {
    report("Model", [chosen.fault]);
    if (options.model !== undefined) return end(undefined);
  }
  const surroundings: Surroundings = { wire, isKey, ...("fault" in chosen ? none : chosen) };
  for (const [title, checks] of groupsOf(surroundings)) {
    const findings: Finding[] = [];
    for (const check of checks) {
      onWaiting?.([`${title}: ${check.name}`]);
      findings.push(...(await runCheck(asCheck(check), { signal })));
    }
    report(title, findings);
  }
  onWaiting?.([]);
  return end(surroundings.chat?.id ?? surroundings.embeddings?.id);
}

const none = { chat: undefined, embeddings: undefined };

function groupsOf(surroundings: Surroundings): [title: string, checks: ClientCheck[]][] {
  return [
    ["Models", modelChecks(surroundings)],
    ["Credentials", credentialChecks(surroundings)],
    ["Chat", chatChecks(surroundings)],
    ["Streams", streamChecks(surroundings)],
    ["Embeddings", embeddingChecks(surroundings)],
    ["Errors", errorChecks(surroundings)],
  ];
}

async function modelsOf(wire: Wire, signal: AbortSignal): Promise<{ models: Model[] } | { fault: Finding }> {
  const sent = "GET /models";
  try {
    const answer = await wire.ask("/models", AbortSignal.any([signal, AbortSignal.timeout(10_000)]));
    if (answer.status === 401) {
      const remedy = "Give a key of this server: HEADRACE_API_KEY, or --api-key-stdin.";
      return { fault: { ...failure("list", "the server refuses the key (401)", remedy), sent } };
    }
    const list = modelList.safeParse(answer.json);
    // Another test reports faults of the list. Here, its readable entries are used.
    const models = list.success ? list.data.data : modelsIn(answer.json);
    return { models: models.filter(({ alias_of: model }) => model === undefined) };
  } catch (error) {
    signal.throwIfAborted();
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const remedy = "Start it with headrace serve, or name the right one with --base-url; headrace doctor says more.";
    return { fault: { ...failure("server", `no answer (${code})`, remedy), sent } };
  }
}

function modelsIn(json: unknown): Model[] {
  const data = (json as { data?: unknown } | undefined)?.data;
  if (!Array.isArray(data)) return [];
  return data.filter((entry): entry is Model => typeof (entry as { id?: unknown } | null)?.id === "string");
}

function choose(
  models: readonly Model[],
  wanted: string | undefined,
): Pick<Surroundings, "chat" | "embeddings"> | { fault: Finding } {
  const chats = (model: Model) => model.capabilities?.chat !== false;
  const embeds = (model: Model) => model.capabilities?.embeddings === true;
  if (wanted !== undefined) {
    const model = models.find(({ id }) => id === wanted);
    if (!model) {
      const remedy = "headrace models lists those that this key may use.";
      return { fault: failure("model", `there is no ${wanted} for this key`, remedy) };
    }
    // If the model does not declare whether it has embeddings, the test tries.
    const isEmbedding = model.capabilities?.embeddings !== false;
    return { chat: chats(model) ? model : undefined, embeddings: isEmbedding ? model : undefined };
  }
  const demo = models.find(({ id }) => id === demoId);
  const chat = demo ?? models.find((model) => model.capabilities?.chat === true) ?? models.find(chats);
  const embeddings = demo ?? models.find(embeds);
  if (chat || embeddings) return { chat, embeddings };
  return { fault: skipped("model", "there is none for this key, so nothing is generated") };
}
