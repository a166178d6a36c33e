// Stores a conversation in the browser tab across reloads: its messages and settings, up to a size.
import { ApiFailure } from "../../api/client.ts";
import { keepInTab, keptInTab } from "../../api/tab-storage.ts";
import type { AnswerPath } from "./answer-stream.ts";
import type { ConversationState, Exchange } from "./exchange.ts";
import { untouched } from "./settings.ts";

type Kept = Pick<ConversationState, "exchanges" | "settings" | "draft" | "model">;

/** The limit in characters; if a conversation is longer, its latest exchanges are stored. */
const maxLength = 500_000;

/** `of` identifies the person, the account and the environment, and the compared model. */
function nameOf(path: AnswerPath, of: string): string {
  return `headrace-conversation ${path} ${of}`;
}

export function keep(path: AnswerPath, of: string, { exchanges, settings, draft, model }: Kept): void {
  const latest = latestOf(exchanges.map(withoutFiles));
  const isEmpty = latest.length === 0 && draft === "" && settings === untouched;
  keepInTab(nameOf(path, of), isEmpty ? undefined : JSON.stringify({ exchanges: latest, settings, draft, model }));
}

function withoutFiles({ attachments, ...exchange }: Exchange): Exchange {
  return attachments ? { ...exchange, attachments: attachments.map(({ name, kind }) => ({ name, kind })) } : exchange;
}

/** Returns the latest exchanges that fit within the limit. */
function latestOf(exchanges: readonly Exchange[]): readonly Exchange[] {
  let length = 0;
  const lengths = exchanges.map((exchange) => JSON.stringify(exchange).length).reverse();
  const count = lengths.findIndex((one) => {
    length += one;
    return length > maxLength;
  });
  return count < 0 ? exchanges : exchanges.slice(exchanges.length - count);
}

/** Returns undefined if nothing is stored, or nothing that this version of the page understands. */
export function keptOf(path: AnswerPath, of: string): Kept | undefined {
  try {
    const kept = JSON.parse(keptInTab(nameOf(path, of)) ?? "null") as Kept | null;
    if (kept === null || !Array.isArray(kept.exchanges) || !Array.isArray(kept.settings.stop)) return undefined;
    const settings = { ...kept.settings, tools: kept.settings.tools ?? [] };
    return { ...kept, settings, exchanges: kept.exchanges.map(ended) };
  } catch {
    return undefined;
  }
}

/** Marks a streaming answer as stopped, because the reload cut it off. */
function ended({ answer, ...exchange }: Exchange): Exchange {
  const isOver = answer.state === "done" || answer.state === "failed" || answer.state === "stopped";
  const failure = answer.failure && new ApiFailure({ ...answer.failure, message: answer.failure.message });
  return { ...exchange, answer: { ...answer, state: isOver ? answer.state : "stopped", failure } };
}
