// Full-text search in stored chats. Only the text of messages and answers is searched, not the JSON around it.

/** Searches for a text, ignoring case. Prepares the search once, because many chats are searched. */
export class ChatTextSearch {
  readonly #text: string;
  /** The searched text as it appears in JSON, with escapes. */
  readonly #json: string;

  constructor(text: string) {
    this.#text = text.toLowerCase();
    this.#json = JSON.stringify(this.#text).slice(1, -1);
  }

  /** Reports whether the text is in these messages or this completion. Both are JSON as `JSON.stringify` writes it. */
  isIn(messages: string, completion: string): boolean {
    return (
      (this.#mayBeIn(messages) && this.#hasText(JSON.parse(messages))) ||
      (this.#mayBeIn(completion) && this.#hasText(answersOf(JSON.parse(completion))))
    );
  }

  /** Reports whether the text may be in the JSON. This check is cheap, so that few chats have to be parsed. */
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

/** Returns the texts of a message. Its content is a text or an array of parts, of which images have no text. */
function textsOf(message: unknown): string[] {
  const content = member(message, "content");
  const parts = Array.isArray(content) ? content.map((part) => member(part, "text")) : [content];
  return [...parts, member(message, "refusal")].filter((text) => typeof text === "string");
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
