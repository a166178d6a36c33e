// Full-text search in stored chats: in the text of messages and answers, not in the JSON around it.

/** Finds a text ignoring case. The pattern is prepared once, because many chats are searched. */
export class ChatTextSearch {
  readonly #text: string;
  /** The text in the form in which JSON encodes it. */
  readonly #json: string;

  constructor(text: string) {
    this.#text = text.toLowerCase();
    this.#json = JSON.stringify(this.#text).slice(1, -1);
  }

  /** Searches JSON texts as `JSON.stringify` writes them: the messages of the request and the completion. */
  isIn(messages: string, completion: string): boolean {
    return (
      (this.#mayBeIn(messages) && this.#hasText(JSON.parse(messages))) ||
      (this.#mayBeIn(completion) && this.#hasText(answersOf(JSON.parse(completion))))
    );
  }

  /** A cheap filter before parsing, because most chats do not match. */
  #mayBeIn(json: string): boolean {
    return json.toLowerCase().includes(this.#json);
  }

  #hasText(messages: unknown): boolean {
    if (!Array.isArray(messages)) return false;
    return messages.some((message) => textsOf(message).some((text) => text.toLowerCase().includes(this.#text)));
  }
}

function answersOf(completion: unknown): unknown[] {
  const choices = member(completion, "choices");
  return Array.isArray(choices) ? choices.map((choice) => member(choice, "message")) : [];
}

/** A content is one text or an array of parts. Images have no text. */
function textsOf(message: unknown): string[] {
  const content = member(message, "content");
  const parts = Array.isArray(content) ? content.map((part) => member(part, "text")) : [content];
  return [...parts, member(message, "refusal")].filter((text) => typeof text === "string");
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
