// The operations of a model, and their paths.

/** Each is one path of the OpenAI API, relative to the base URL. */
export const operationPaths = {
  chat: "/chat/completions",
  completion: "/completions",
  embedding: "/embeddings",
} as const;

export type Operation = keyof typeof operationPaths;

/** Whether tokens are generated for it, one after the other: that takes other places at an engine than reading texts does. */
export const generates: Readonly<Record<Operation, boolean>> = { chat: true, completion: true, embedding: false };

/** The result of `of` for the path of each. */
export function byOperation<Value>(of: (path: string) => Value): Readonly<Record<Operation, Value>> {
  const each = Object.entries(operationPaths).map(([operation, path]) => [operation, of(path)]);
  return Object.fromEntries(each) as Record<Operation, Value>;
}
