// The capabilities of a model.
export const capabilityNames = ["chat", "completion", "embeddings"] as const;

/** The capabilities of a model; a missing entry means unknown, and the engine decides. */
export interface Capabilities {
  chat?: boolean;
  completion?: boolean;
  embeddings?: boolean;
}
