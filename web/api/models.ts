// Loads the list of models, and derives each model's abilities and health.
import { useMemo } from "react";
import { useRead } from "./queries.ts";
import type { ModelList, ModelStatus, ModelStatusList } from "./types.ts";

/** Loads the models with their status; `models` is undefined while loading. */
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

/** Words in the ids of models that do something else than chat. */
const signs: readonly (readonly [RegExp, Ability])[] = [
  [/rerank/i, "rerank"],
  [/embed|\bbge-|\bgte-|\be5-/i, "embeddings"],
  [/moderation/i, "moderation"],
  [/whisper|transcri/i, "transcription"],
  [/\btts\b|speech|kokoro/i, "speech"],
  [/dall-e|gpt-image|stable-diffusion|\bflux/i, "images"],
  [/realtime/i, "realtime"],
];

/** Returns the likely ability of a model that declares none, by the words of its id; most models chat. */
export function guessedAbility(id: string): Ability {
  return signs.find(([sign]) => sign.test(id))?.[1] ?? "chat";
}

/**
 * Returns the ability by which the playground tries a model. If a model declares no abilities, the guessed ability is
 * tried, and the model server decides whether the model has it.
 */
export function mainAbilityOf(model: ModelStatus): Ability | undefined {
  const known = abilitiesOf(model);
  const guess = guessedAbility(model.id);
  if (known.length === 0 && model.capabilities?.[guess] !== false) return guess;
  return known.includes("chat") ? "chat" : (known.find((use) => use === "embeddings") ?? known[0]);
}

/**
 * Returns the model for an example, chosen as on the command line. Models that can chat come first. Models whose id
 * suggests that they can chat come next, and the demo model comes last. `of` holds the model ids and patterns of a key;
 * null means all.
 */
export function chatModel({ data }: ModelList, of: readonly string[] | null = null) {
  const isNamed = (id: string) =>
    of?.some((name) => (name.endsWith("*") ? id.startsWith(name.slice(0, -1)) : id === name)) ?? true;
  const able = data.filter(
    ({ id, capabilities, alias_of: model }) => capabilities?.chat !== false && model === undefined && isNamed(id),
  );
  const others = able.filter(({ id }) => id !== "tiny-demo");
  const declared = others.find(({ capabilities }) => capabilities?.chat === true);
  return declared ?? others.find(({ id }) => guessedAbility(id) === "chat") ?? others[0] ?? able[0];
}

export type Health = "ok" | "partly" | "down";

/** `partly` means that only some deployments are healthy. */
export function healthOf({ deployments }: ModelStatus): Health {
  const working = deployments.filter(({ state }) => state === "ok").length;
  if (working === 0) return "down";
  return working === deployments.length ? "ok" : "partly";
}

/**
 * The models without a price: reports count their usage as a cost of 0, so the reported spend leaves their usage out.
 */
export interface Unpriced {
  /**
   * Reports whether the list of models has no price for a model. Removed models have none either, so callers ask only
   * about usage that cost nothing.
   */
  has(model: string): boolean;
  names: readonly string[];
  /** False while the models are loading. Pages wait, because a later notice would move the content below it. */
  isSettled: boolean;
  /** True if a spend of 0 can only mean a missing price: some model has none, and no model has a price of zero. */
  isAllThatIsFree: boolean;
}

/** Finds the models without a price. `enabled` is true only if some usage cost nothing. */
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

/** Reports whether the usage has tokens but no cost. */
export function costsNothing({ cost, total_tokens }: { cost: number; total_tokens: number }): boolean {
  return cost === 0 && total_tokens > 0;
}
