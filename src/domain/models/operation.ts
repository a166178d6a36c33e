// The operations of a model, and their paths.

/** Each operation has a path relative to the base URL: OpenAI's API, and `message` of Anthropic's. */
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

/** Operations without a path: responses in a realtime session, and tool calls. */
const otherBooked = ["realtime", "tool"] as const;
/** The operations in the ledger. */
export type BookedOperation = Operation | (typeof otherBooked)[number];
export const bookedOperations = [...(Object.keys(operationPaths) as Operation[]), ...otherBooked] as const;

/** Returns undefined for operations that are no model request. */
export function modelOperation(operation: BookedOperation): Operation | undefined {
  return (otherBooked as readonly BookedOperation[]).includes(operation) ? undefined : (operation as Operation);
}

/**
 * True if an operation generates tokens one after the other, which uses other slots of an engine than reading texts.
 */
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

/** Tasks: a model is asked once and answers, without a conversation. Their code is in `requests/dialects/task/`. */
export const taskOperations = [
  ...(["rerank", "score", "moderation", "decision"] as const),
  ...(["speech", "transcription", "translation"] as const),
  ...(["image", "image_edit", "image_variation"] as const),
  ...(["tokenize", "detokenize"] as const),
] as const satisfies readonly Operation[];

export function isTask(operation: Operation): boolean {
  return (taskOperations as readonly Operation[]).includes(operation);
}

/** Operations whose path at a server has no API version: vLLM and llama-server have only `/tokenize`. */
const unversioned: ReadonlySet<Operation> = new Set(["tokenize", "detokenize"]);

export function isUnversioned(operation: Operation): boolean {
  return unversioned.has(operation);
}

/** Makes an object with the result of `of` for each path. */
export function byOperation<Value>(
  of: (path: string, operation: Operation) => Value,
): Readonly<Record<Operation, Value>> {
  const each = Object.entries(operationPaths).map(([operation, path]) => [operation, of(path, operation as Operation)]);
  return Object.fromEntries(each) as Record<Operation, Value>;
}
