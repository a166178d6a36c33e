// What somebody may use, by the servers that it is of.
import { type Listed, type Offer, serverOf } from "../../api/tools.ts";

export interface OfferOfServer {
  server: string;
  tools: readonly Listed[];
  prompts: readonly Listed[];
  resources: readonly Listed[];
}

/** In the order of their names. */
export function byServer({ tools, prompts, resources }: Offer): OfferOfServer[] {
  const names = new Set([
    ...[...tools, ...prompts].map(({ name }) => serverOf(name)),
    ...resources.map(({ uri }) => serverOfResource(uri)),
  ]);
  return [...names].sort().map((server) => ({
    server,
    tools: tools.filter(({ name }) => serverOf(name) === server),
    prompts: prompts.filter(({ name }) => serverOf(name) === server),
    resources: resources.filter(({ uri }) => serverOfResource(uri) === server),
  }));
}

/** `headrace+server:…` */
function serverOfResource(uri: unknown): string {
  return /^headrace\+([a-z0-9-]+):/.exec(String(uri))?.[1] ?? "";
}

/** Whether any of the words is in what its server says of it. */
export function isFound({ name, title, description }: Listed, search: string): boolean {
  const searchedText = `${name} ${text(title)} ${text(description)}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searchedText.includes(word));
}

/** Undefined or empty where it is no text. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
