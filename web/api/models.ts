// Which models there are, what each can do, and how it does where it runs.
import { useMemo } from "react";
import { useRead } from "./queries.ts";
import type { ModelList, ModelStatus, ModelStatusList } from "./types.ts";

/** `models`: undefined while they are being asked for. */
export function useModels(everyMs?: number) {
  const read = useRead<ModelStatusList>("/v1/model-status", {}, everyMs === undefined ? {} : { everyMs });
  return { models: read.data?.data, error: read.error, refetch: read.refetch };
}

type Ability = keyof typeof abilityNames;
export const abilityNames = {
  chat: "Chat",
  completion: "Text completion",
  embeddings: "Embeddings",
  rerank: "Reranking",
  moderation: "Moderation",
  decisions: "Decisions",
  speech: "Speech",
  transcription: "Transcription",
  images: "Images",
  realtime: "Realtime",
  tokenize: "Tokens",
} as const;
export const abilities = Object.keys(abilityNames) as readonly Ability[];

export function abilitiesOf({ capabilities }: ModelStatus): Ability[] {
  return abilities.filter((use) => capabilities?.[use] === true);
}

/** What it is tried with: chat where it may be able to, as the model server decides where nobody says. */
export function mainAbilityOf(model: ModelStatus): Ability | undefined {
  const known = abilitiesOf(model);
  const isUnknown = known.length === 0 && model.capabilities?.chat !== false;
  return isUnknown || known.includes("chat") ? "chat" : (known.find((use) => use === "embeddings") ?? known[0]);
}

/**
 * Returns the model for an example, as the command line chooses: one that surely chats, then one that may; the demo model
 * only if no other is served. `of`: the ids and patterns of a key; null: all.
 */
export function chatModel({ data }: ModelList, of: readonly string[] | null = null) {
  const isNamed = (id: string) =>
    of?.some((name) => (name.endsWith("*") ? id.startsWith(name.slice(0, -1)) : id === name)) ?? true;
  const able = data.filter(
    ({ id, capabilities, alias_of: model }) => capabilities?.chat !== false && model === undefined && isNamed(id),
  );
  const others = able.filter(({ id }) => id !== "tiny-demo");
  return others.find(({ capabilities }) => capabilities?.chat === true) ?? others[0] ?? able[0];
}

export type Health = "ok" | "partly" | "down";

/** `partly`: at some of the places where it runs. */
export function healthOf({ deployments }: ModelStatus): Health {
  const working = deployments.filter(({ state }) => state === "ok").length;
  if (working === 0) return "down";
  return working === deployments.length ? "ok" : "partly";
}

/** What spend leaves out: requests to models without a price, which reports have as a cost of 0. */
export interface Unpriced {
  /** Whether a model is known to have no price; one that is not on offer any more had none if it cost nothing. */
  has(model: string): boolean;
  names: readonly string[];
  /** False while it is being asked for: what it adds to a page would move what is below. */
  isSettled: boolean;
  /** Whether a spend of 0 can come of nothing else, as no model is free by its price. */
  isAllThatIsFree: boolean;
}

/** `enabled`: where there is something that cost nothing. */
export function useUnpriced(enabled = true): Unpriced {
  const { data, error } = useRead<ModelList>("/v1/models", {}, { enabled });
  const isSettled = data !== undefined || error !== null;
  return useMemo(() => {
    const models = data?.data.filter(({ alias_of: model }) => model === undefined) ?? [];
    const priced = new Set(models.filter(({ price }) => price).map(({ id }) => id));
    const names = models.filter(({ price }) => !price).map(({ id }) => id);
    const isFree = models.some(({ price }) => price && price.input === 0 && price.output === 0);
    return {
      ...{ names, isSettled },
      has: (model) => data !== undefined && !priced.has(model),
      isAllThatIsFree: names.length > 0 && !isFree,
    };
  }, [data, isSettled]);
}

/** Whether something was used of which nothing was charged. */
export function costsNothing({ cost, total_tokens }: { cost: number; total_tokens: number }): boolean {
  return cost === 0 && total_tokens > 0;
}
