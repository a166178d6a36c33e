// What is asked of a model.
/** What a request asks of a model; each is one path of the OpenAI API, relative to the base URL. */
export const operationPaths = {
  chat: "/chat/completions",
  completion: "/completions",
  embedding: "/embeddings",
} as const;

export type Operation = keyof typeof operationPaths;

/** Whether tokens are generated for it, one after the other: that takes other places at an engine than reading texts does. */
export const generates: Readonly<Record<Operation, boolean>> = { chat: true, completion: true, embedding: false };
