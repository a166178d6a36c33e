// What a model can do.
export const capabilityNames = ["chat", "completion", "embeddings"] as const;

/** What a model can do; a missing entry means unknown, and the engine decides. */
export interface Capabilities {
  chat?: boolean;
  completion?: boolean;
  embeddings?: boolean;
}
