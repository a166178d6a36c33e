// The operations of a model, and their paths.

/** Each is one path relative to the base URL: of OpenAI's API, and `message` of Anthropic's. */
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

/** What no path of its own stands for: the responses within a realtime session, and calls of tools. */
const otherBooked = ["realtime", "tool"] as const;
/** What is on the ledger. */
export type BookedOperation = Operation | (typeof otherBooked)[number];
export const bookedOperations = [...(Object.keys(operationPaths) as Operation[]), ...otherBooked] as const;

/** Undefined for what is no request for a model. */
export function modelOperation(operation: BookedOperation): Operation | undefined {
  return (otherBooked as readonly BookedOperation[]).includes(operation) ? undefined : (operation as Operation);
}

/** Whether tokens are generated for it, one after the other: that takes other places at an engine than reading texts does. */
export const generates: Readonly<Record<Operation, boolean>> = {
  ...{ chat: true, completion: true, embedding: false },
  ...{ response: true, message: true },
  ...{ rerank: false, score: false, moderation: false, decision: false },
  ...{ speech: false, transcription: false, translation: false },
  ...{ image: false, image_edit: false, image_variation: false },
  ...{ tokenize: false, detokenize: false },
};

/** Those in which the same conversation can be had: what a server does not speak of them is translated. */
export const conversationOperations = ["chat", "response", "message"] as const satisfies readonly Operation[];
export type ConversationOperation = (typeof conversationOperations)[number];

export function isConversation(operation: Operation): operation is ConversationOperation {
  return (conversationOperations as readonly Operation[]).includes(operation);
}

/** Those in which a model is asked once, and answers: `requests/dialects/task/`. */
export const taskOperations = [
  ...(["rerank", "score", "moderation", "decision"] as const),
  ...(["speech", "transcription", "translation"] as const),
  ...(["image", "image_edit", "image_variation"] as const),
  ...(["tokenize", "detokenize"] as const),
] as const satisfies readonly Operation[];

export function isTask(operation: Operation): boolean {
  return (taskOperations as readonly Operation[]).includes(operation);
}

/** Those whose path at a server has no version of the API before it: vLLM and llama-server have `/tokenize` alone. */
const unversioned: ReadonlySet<Operation> = new Set(["tokenize", "detokenize"]);

export function isUnversioned(operation: Operation): boolean {
  return unversioned.has(operation);
}

/** The result of `of` for the path of each. */
export function byOperation<Value>(
  of: (path: string, operation: Operation) => Value,
): Readonly<Record<Operation, Value>> {
  const each = Object.entries(operationPaths).map(([operation, path]) => [operation, of(path, operation as Operation)]);
  return Object.fromEntries(each) as Record<Operation, Value>;
}
