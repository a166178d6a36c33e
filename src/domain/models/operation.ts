// The operations of models, such as chat completions, and their API paths.

/**
 * The path of each operation, below the base URL. Paths are those of OpenAI's API, and for `message` of Anthropic's.
 */
export const operationPaths = {
  chat: "/chat/completions",
  completion: "/completions",
  embedding: "/embeddings",
  response: "/responses",
  message: "/messages",
  rerank: "/rerank",
  score: "/score",
  moderation: "/moderations",
  decision: "/decisions",
  speech: "/audio/speech",
  transcription: "/audio/transcriptions",
  translation: "/audio/translations",
  image: "/images/generations",
  image_edit: "/images/edits",
  image_variation: "/images/variations",
  tokenize: "/tokenize",
  detokenize: "/detokenize",
} as const;

export type Operation = keyof typeof operationPaths;

/**
 * Operations without a path of their own that the ledger records too: responses in a realtime session, and tool calls.
 */
const otherBooked = ["realtime", "tool"] as const;
/** An operation that the ledger records. */
export type BookedOperation = Operation | (typeof otherBooked)[number];
export const bookedOperations = [...(Object.keys(operationPaths) as Operation[]), ...otherBooked] as const;

/** Returns the operation if it is a model request, otherwise undefined. */
export function modelOperation(operation: BookedOperation): Operation | undefined {
  return (otherBooked as readonly BookedOperation[]).includes(operation) ? undefined : (operation as Operation);
}

/** True if an operation generates tokens one by one. Engines have separate slots for such operations. */
export const generates: Readonly<Record<Operation, boolean>> = {
  ...{ chat: true, completion: true, embedding: false },
  ...{ response: true, message: true },
  ...{ rerank: false, score: false, moderation: false, decision: false },
  ...{ speech: false, transcription: false, translation: false },
  ...{ image: false, image_edit: false, image_variation: false },
  ...{ tokenize: false, detokenize: false },
};

/** Conversation formats that can be translated into each other. */
export const conversationOperations = ["chat", "response", "message"] as const satisfies readonly Operation[];
export type ConversationOperation = (typeof conversationOperations)[number];

export function isConversation(operation: Operation): operation is ConversationOperation {
  return (conversationOperations as readonly Operation[]).includes(operation);
}

/** Operations in which a model is asked once, without a conversation. Their code is in `requests/dialects/task/`. */
export const taskOperations = [
  ...(["rerank", "score", "moderation", "decision"] as const),
  ...(["speech", "transcription", "translation"] as const),
  ...(["image", "image_edit", "image_variation"] as const),
  ...(["tokenize", "detokenize"] as const),
] as const satisfies readonly Operation[];

export function isTask(operation: Operation): boolean {
  return (taskOperations as readonly Operation[]).includes(operation);
}

/** Operations whose path has no API version such as `/v1`: vLLM and llama-server have only `/tokenize`. */
const unversioned: ReadonlySet<Operation> = new Set(["tokenize", "detokenize"]);

export function isUnversioned(operation: Operation): boolean {
  return unversioned.has(operation);
}

/** Returns an object with a member for each operation. `of` computes its value. */
export function byOperation<Value>(
  of: (path: string, operation: Operation) => Value,
): Readonly<Record<Operation, Value>> {
  const each = Object.entries(operationPaths).map(([operation, path]) => [operation, of(path, operation as Operation)]);
  return Object.fromEntries(each) as Record<Operation, Value>;
}
