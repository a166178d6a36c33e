// The capabilities of a model.

/** What a model can do, each with what it means to whoever chooses one. */
export const capabilities = {
  chat: "Answers chat completions.",
  completion: "Answers legacy completions.",
  embeddings: "Makes embeddings.",
  rerank: "Ranks documents by a query, and scores texts.",
  moderation: "Tells what in a text or an image is harmful.",
  decisions: "Answers typed questions with probabilities.",
  speech: "Speaks a text.",
  transcription: "Writes down what is said in a recording, or its translation.",
  images: "Makes images, and edits them.",
  realtime: "Talks over a WebSocket, in audio or text, as it is said.",
  tokenize: "Tells the tokens of a text, and the text of tokens.",
} as const;

export type CapabilityName = keyof typeof capabilities;
export const capabilityNames = Object.keys(capabilities) as readonly CapabilityName[];

/** The capabilities of a model; a missing entry means unknown, and the engine decides. */
export type Capabilities = { [Name in CapabilityName]?: boolean };

/** The same members for each capability. */
export function byCapability<Value>(of: (meaning: string) => Value): Record<CapabilityName, Value> {
  return Object.fromEntries(capabilityNames.map((name) => [name, of(capabilities[name])])) as Record<
    CapabilityName,
    Value
  >;
}
