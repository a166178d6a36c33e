// Whether a model server has the endpoints of what its models are configured to do.
import type { CapabilityName } from "../domain/models/capabilities.ts";
import { type Operation, operationPaths } from "../domain/models/operation.ts";
import { type HttpTarget, postText } from "../engines/http-engine.ts";
import { hasRealtime } from "../engines/realtime.ts";

/** A capability that is said of models at a server, with their ids there. */
export interface SaidCapability {
  capability: CapabilityName;
  models: readonly string[];
}

/** One of these is enough; what is left out is seen by other checks, or by nothing that costs nothing. */
const endpoints: Partial<Record<CapabilityName, readonly Operation[]>> = {
  embeddings: ["embedding"],
  rerank: ["rerank", "score"],
  moderation: ["moderation"],
  decisions: ["decision"],
  tokenize: ["tokenize"],
};
/** No server runs anything for it: each of its members has a type that none takes. */
const look = '{"input":false,"query":false,"documents":false,"questions":false,"prompt":false,"content":false}';
const nothingThere: ReadonlySet<number> = new Set([404, 405, 501]);
const maxAnswerBytes = 64 * 1024;

/** The paths that are missing for it: none where one of them is there, or the server does not say. */
export async function missingFor(
  target: HttpTarget,
  { capability, models }: SaidCapability,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (capability === "realtime") return (await hasRealtime(target, models[0] ?? "")) ? [] : ["/realtime"];
  const operations = endpoints[capability] ?? [];
  const isMissing = async (operation: Operation) => {
    const { status } = await postText(target, operation, look, maxAnswerBytes, signal);
    return nothingThere.has(status);
  };
  for (const operation of operations) if (!(await isMissing(operation).catch(() => false))) return [];
  return operations.map((operation) => operationPaths[operation]);
}
