// Two tools that stand for all others if there are many: one searches tools by words, the other calls a tool.
import { accountTicks } from "../../base/account-ticks.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { isObject } from "./server-lists.ts";

/** Public names that are reserved: a server's tool of the same public name gets another one. */
export const searchToolNames = { search: "search_tools", call: "call_tool" } as const;
const [defaultFound, maxFound] = [10, 50];
const maxQueryLength = 1_000;
/** Maximum characters of a description that are searched, because each search reads all descriptions. */
const maxSearchedLength = 4_000;
/** Characters that each tool counts as in addition to its description, because its name costs work too. */
const minSearchedLength = 64;
/** Characters of tools that are searched before other work runs. */
const searchedAtOnce = 65_536;
/** Minimum length of a word that also matches as a prefix of longer words. */
const shortestBeginning = 3;

export function isSearchTool(name: string): boolean {
  return name === searchToolNames.search || name === searchToolNames.call;
}

export function searchTools(count: number): JsonObject[] {
  return [
    {
      name: searchToolNames.search,
      title: "Search tools",
      description: `Finds tools by what they do, among ${count}. Gives their names, descriptions and input schemas; call one with ${searchToolNames.call}.`,
      inputSchema: {
        type: "object",
        properties: {
          query: {
            type: "string",
            maxLength: maxQueryLength,
            description: "Words that say what the tool is to do.",
          },
          limit: { type: "integer", minimum: 1, maximum: maxFound, default: defaultFound },
        },
        required: ["query"],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: searchToolNames.call,
      title: "Call a tool",
      description: `Calls a tool that ${searchToolNames.search} found.`,
      inputSchema: {
        type: "object",
        properties: {
          name: { type: "string", description: "The name of the tool, as it was found." },
          arguments: { type: "object", description: "What its input schema asks for." },
        },
        required: ["name"],
      },
    },
  ];
}

/**
 * Returns the result of the search tool. `tools` are those that the client may use. All searches of an account together
 * read only a part of the descriptions per tick of the event loop.
 */
export async function searchToolsAnswer(
  tools: Iterable<JsonObject>,
  args: unknown,
  accountId: string,
): Promise<JsonObject> {
  const { query, limit = defaultFound } = isObject(args) ? args : {};
  if (typeof query !== "string" || query.trim() === "" || query.length > maxQueryLength) {
    throw new RpcError(invalidParams, `query must be some words, of at most ${maxQueryLength} characters.`);
  }
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1 || limit > maxFound) {
    throw new RpcError(invalidParams, `limit must be a whole number from 1 to ${maxFound}.`);
  }
  const words = wordsOf(query);
  const matches: { tool: JsonObject; score: number }[] = [];
  await accountTicks.next(accountId);
  let searched = 0;
  for (const tool of tools) {
    const score = scoreOf(tool, words);
    if (score > 0) matches.push({ tool, score });
    const { description } = tool;
    searched +=
      minSearchedLength + Math.min(typeof description === "string" ? description.length : 0, maxSearchedLength);
    if (searched < searchedAtOnce) continue;
    searched = 0;
    await accountTicks.next(accountId);
  }
  const found = matches
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ tool: { name, description, inputSchema, annotations } }) => ({
      name,
      description,
      inputSchema,
      annotations,
    }));
  return { content: [{ type: "text", text: JSON.stringify({ tools: found }) }], structuredContent: { tools: found } };
}

/** Returns the tool call that is contained in the arguments of `call_tool`. */
export function callTool(args: unknown): { name: string; arguments: JsonObject } {
  const { name, arguments: inner = {} } = isObject(args) ? args : {};
  if (typeof name !== "string" || isSearchTool(name))
    throw new RpcError(invalidParams, "name must be that of a tool which was found.");
  if (!isObject(inner)) throw new RpcError(invalidParams, "arguments must be an object.");
  return { name, arguments: inner };
}

/** Returns how well a tool matches. A word in its name counts more than one in its description. */
function scoreOf({ name, title, description }: JsonObject, words: ReadonlySet<string>): number {
  const named = `${String(name)} ${typeof title === "string" ? title : ""}`;
  const text = typeof description === "string" ? description : "";
  return 3 * countIn(named.slice(0, maxSearchedLength), words) + countIn(text.slice(0, maxSearchedLength), words);
}

/** Returns how many of the words occur in the text, as whole words or as prefixes. */
function countIn(text: string, words: ReadonlySet<string>): number {
  const lengths = new Set([...words].map(({ length }) => length).filter((length) => length >= shortestBeginning));
  const found = new Set<string>();
  for (const one of wordsOf(text)) {
    found.add(one);
    for (const length of lengths) found.add(one.slice(0, length));
  }
  return found.intersection(words).size;
}

function wordsOf(text: string): ReadonlySet<string> {
  const words =
    text
      .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words);
}
