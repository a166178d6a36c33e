// The capabilities of a model.

/** The names of capabilities, each with its description. */
export const capabilities = {
  chat: "Answers chat completions.",
  completion: "Answers legacy completions.",
  embeddings: "Creates embeddings.",
  rerank: "Ranks documents for a query, and scores texts.",
  moderation: "Detects harmful texts and images.",
  decisions: "Answers typed questions with probabilities.",
  speech: "Converts text to speech.",
  transcription: "Transcribes or translates recordings.",
  images: "Creates and edits images.",
  realtime: "Holds a live conversation over a WebSocket, in audio or text.",
  tokenize: "Converts texts to tokens and back.",
} as const;

export type CapabilityName = keyof typeof capabilities;
export const capabilityNames = Object.keys(capabilities) as readonly CapabilityName[];

/** The capabilities that a model has or lacks. A missing entry means unknown: requests are then sent to the engine. */
export type Capabilities = { [Name in CapabilityName]?: boolean };

/** Returns an object with a member for each capability. */
export function byCapability<Value>(of: (meaning: string) => Value): Record<CapabilityName, Value> {
  return Object.fromEntries(capabilityNames.map((name) => [name, of(capabilities[name])])) as Record<
    CapabilityName,
    Value
  >;
}
