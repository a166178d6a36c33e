// Checks whether a model server has the endpoints for its models' configured capabilities.
import type { CapabilityName } from "../domain/models/capabilities.ts";
import { type Operation, operationPaths } from "../domain/models/operation.ts";
import { type HttpTarget, postText } from "../engines/http-engine.ts";
import { hasRealtime } from "../engines/realtime.ts";

/** A capability that is stated for models on a server, with their ids there. */
export interface SaidCapability {
  capability: CapabilityName;
  models: readonly string[];
}

/**
 * The operations of a capability; a server needs one of them. Capabilities without an entry are covered by other
 * checks, or cannot be checked free of charge.
 */
const endpoints: Partial<Record<CapabilityName, readonly Operation[]>> = {
  embeddings: ["embedding"],
  rerank: ["rerank", "score"],
  moderation: ["moderation"],
  decisions: ["decision"],
  tokenize: ["tokenize"],
};
/** A request body that costs nothing: every member has a type that no server accepts. */
const probeBody = '{"input":false,"query":false,"documents":false,"questions":false,"prompt":false,"content":false}';
const nothingThere: ReadonlySet<number> = new Set([404, 405, 501]);
const maxAnswerBytes = 64 * 1024;

/**
 * Returns the paths that a server lacks for a capability. Empty if one of its paths exists, or if the server does not
 * tell.
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
