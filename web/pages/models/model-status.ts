// Which models there are, what each can do, and how it does where it runs.
import type { ApiFailure } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";

export type DeploymentState = "ok" | "unreachable" | "cooling_down" | "draining";

export interface DeploymentStatus {
  upstream: string;
  kind: "built-in" | "configured" | "found";
  /** As the upstream calls it. */
  model: string;
  state: DeploymentState;
  running: number;
  waiting: number;
  concurrency: number | null;
  first_token_ms: number | null;
  tokens_per_second: number | null;
}

export interface ModelStatus {
  id: string;
  capabilities?: { chat?: boolean; completion?: boolean; embeddings?: boolean };
  context_length?: number;
  /** USD per million tokens. */
  price: { input: number; output: number } | null;
  /** Undefined: not known, as the server is older than this page. */
  deployments?: DeploymentStatus[];
}

interface ModelsRead {
  /** Undefined while they are being asked for. */
  models: readonly ModelStatus[] | undefined;
  error: ApiFailure | null;
  refetch(): unknown;
}

const none = { price: null } as const;

export function useModels(everyMs?: number): ModelsRead {
  const status = useRead<{ data: ModelStatus[] }>("/v1/model-status", {}, everyMs === undefined ? {} : { everyMs });
  const isOlder = status.error?.status === 404;
  const list = useRead<ModelList>("/v1/models", {}, { enabled: isOlder });
  if (!isOlder) return { models: status.data?.data, error: status.error, refetch: status.refetch };
  return { models: list.data?.data.map((model) => ({ ...model, ...none })), error: list.error, refetch: list.refetch };
}

export type Use = "chat" | "completion" | "embeddings";
export const uses: readonly Use[] = ["chat", "completion", "embeddings"];
export const useNames: Record<Use, string> = { chat: "Chat", completion: "Text completion", embeddings: "Embeddings" };

export function usesOf({ capabilities }: ModelStatus): Use[] {
  return uses.filter((use) => capabilities?.[use] === true);
}

/** What it is tried with: chat where it may be able to, as the model server decides where nobody says. */
export function mainUseOf(model: ModelStatus): Use | undefined {
  const known = usesOf(model);
  const isUnknown = known.length === 0 && model.capabilities?.chat !== false;
  return isUnknown || known.includes("chat") ? "chat" : (known.find((use) => use === "embeddings") ?? known[0]);
}

export type Health = "ok" | "partly" | "down";

/** Undefined where nothing is known of where it runs. */
export function healthOf({ deployments }: ModelStatus): Health | undefined {
  if (!deployments) return undefined;
  const working = deployments.filter(({ state }) => state === "ok").length;
  if (working === 0) return "down";
  return working === deployments.length ? "ok" : "partly";
}
