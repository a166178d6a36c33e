// Checks whether a model server has the endpoints that the configured capabilities of its models need.
import type { CapabilityName } from "../domain/models/capabilities.ts";
import { type Operation, operationPaths } from "../domain/models/operation.ts";
import { type HttpTarget, postText } from "../engines/http-engine.ts";
import { hasRealtime } from "../engines/realtime.ts";

/** A capability that the configuration states for models. `models` are their ids on the model server. */
export interface SaidCapability {
  capability: CapabilityName;
  models: readonly string[];
}

/**
 * The operations of each capability. A model server needs one of them. Capabilities that are missing here have other
 * checks, or cannot be checked free of charge.
 */
const endpoints: Partial<Record<CapabilityName, readonly Operation[]>> = {
  embeddings: ["embedding"],
  rerank: ["rerank", "score"],
  moderation: ["moderation"],
  decisions: ["decision"],
  tokenize: ["tokenize"],
};
/** A request body that costs nothing, because every member has a type that no model server accepts. */
const probeBody = '{"input":false,"query":false,"documents":false,"questions":false,"prompt":false,"content":false}';
const nothingThere: ReadonlySet<number> = new Set([404, 405, 501]);
const maxAnswerBytes = 64 * 1024;

/**
 * Returns the paths that a model server lacks for a capability. Empty if one of them exists, or if the server does not
 * respond.
 */
export async function missingFor(
  target: HttpTarget,
  { capability, models }: SaidCapability,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (capability === "realtime") return (await hasRealtime(target, models[0] ?? "")) ? [] : ["/realtime"];
  const operations = endpoints[capability] ?? [];
  const isMissing = async (operation: Operation) => {
    const { status } = await postText(target, operation, probeBody, maxAnswerBytes, signal);
    return nothingThere.has(status);
  };
  for (const operation of operations) if (!(await isMissing(operation).catch(() => false))) return [];
  return operations.map((operation) => operationPaths[operation]);
}
