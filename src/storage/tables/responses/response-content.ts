// Seals and opens the content of stored responses. Content that cannot be opened counts as missing.
import type { StoredItem, StoredResponse } from "../../../domain/models/stored-response.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { isEnded, outputOf, sealPurposes, sizeOf, storedResponses } from "./response-rows.ts";

/** Characters that are serialized and sealed in one go, which blocks requests. */
const sizeAtOnce = 1_000_000;

/** The columns with the content of a response. */
export interface ContentColumns {
  id: string;
  input: string;
  response: string;
}

export class ResponseContent {
  readonly #sealFor: SealFor;

  constructor(sealFor: SealFor) {
    this.#sealFor = sealFor;
  }

  /** Returns the rows of responses. Yields to the event loop after each `sizeAtOnce` characters. */
  async rows(responses: readonly StoredResponse[]) {
    const rows = [];
    let size = 0;
    for (const stored of responses) {
      if (size > sizeAtOnce) await new Promise(setImmediate);
      if (size > sizeAtOnce) size = 0;
      const row = this.#row(stored);
      size += row.input_size + row.output_size;
      rows.push(row);
    }
    return rows;
  }

  #row(stored: StoredResponse) {
    return {
      ...storedResponses.row(stored),
      input_size: sizeOf(stored.input),
      seen_at: isEnded(stored) ? null : stored.createdAt,
      input: this.seal(sealPurposes.input(stored.id), stored.input),
      ...this.responseColumns(stored.id, stored.response),
    };
  }

  /** Returns the columns that change with the response's result. */
  responseColumns(id: string, response: StoredItem) {
    return { output_size: sizeOf(outputOf(response)), response: this.seal(sealPurposes.response(id), response) };
  }

  /** Returns the response of a row. Undefined if the content cannot be opened, because its key was dropped. */
  record(row: ContentColumns): StoredResponse | undefined {
    const input = this.open<StoredItem[]>(sealPurposes.input(row.id), row.input);
    const response = this.open<StoredItem>(sealPurposes.response(row.id), row.response);
    return input && response && { ...storedResponses.record(row), input, response };
  }

  /** Returns the input items, then the output items. */
  items(row: ContentColumns): StoredItem[] | undefined {
    const input = this.open<StoredItem[]>(sealPurposes.input(row.id), row.input);
    const response = this.open<StoredItem>(sealPurposes.response(row.id), row.response);
    return input && response && [...input, ...outputOf(response)];
  }

  seal(purpose: string, value: unknown): string {
    return this.#sealFor(purpose).seal(JSON.stringify(value));
  }

  /** Decrypts a text. `Value` must be the type that was sealed for this purpose. */
  open<Value>(purpose: string, sealed: string): Value | undefined {
    const opened = this.#sealFor(purpose).open(sealed);
    return opened === undefined ? undefined : (JSON.parse(opened) as Value);
  }
}
