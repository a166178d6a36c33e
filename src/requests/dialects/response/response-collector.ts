// Collects a response from the last event of its stream. This event contains the whole response.
import type { AnswerCollector } from "../answer.ts";
import { isObject, type Json } from "./json.ts";

/** Matches the beginning of the last event's data. The data are one line, because their JSON has no line breaks. */
export const lastEvent = /(?:^|\n)event: response\.(?:completed|incomplete|failed)\ndata: /;

export class ResponseCollector implements AnswerCollector {
  size = 0;
  #response: Record<string, unknown> | undefined;

  add(events: string): void {
    const found = lastEvent.exec(events);
    if (!found) return;
    const start = found.index + found[0].length;
    const end = events.indexOf("\n", start);
    const data = events.slice(start, end < 0 ? undefined : end);
    const { response } = JSON.parse(data) as Json;
    if (!isObject(response)) return;
    this.#response = { ...response };
    this.size = data.length;
  }

  answer(): Record<string, unknown> | undefined {
    return this.#response;
  }
}
