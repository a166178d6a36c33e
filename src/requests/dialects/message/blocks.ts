// Reads those content blocks of a Messages request that show something to a model: texts, images and documents.
import { fieldError } from "../../../base/errors.ts";
import type { Cache, MediaSource, Part, RequestPath } from "../conversation/conversation.ts";
import { isObject, type Json, objectOf, objectsOf, textOf } from "./json.ts";

/**
 * Returns the parts of a block in a prompt or a tool result, in order. Throws `invalid_request` if only Anthropic knows
 * the block.
 */
export function partsOf(block: Json, place: RequestPath): Part[] {
  const cache = cacheOf(block);
  switch (block["type"]) {
    case "text":
      return [{ type: "text", text: textOf(block["text"]) ?? "", cache }];
    case "image":
      return [{ type: "image", source: sourceOf(block, place), cache, place }];
    case "document":
      return documentParts(block, place);
    case "search_result":
      return [{ type: "text", text: searchResultText(block), cache }];
    case "tool_reference":
      return [{ type: "text", text: `The tool \`${textOf(block["tool_name"]) ?? ""}\` can be called now.`, cache }];
    default:
      throw unknownBlock(block, place);
  }
}

/** Returns the content of a message or a tool result as parts. The content is a text or a list of blocks. */
export function contentParts(content: unknown, place: RequestPath): Part[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return objectsOf(content).flatMap((block, i) => partsOf(block, `${place}.content[${i}]`));
}

export function cacheOf(block: Json): Cache | undefined {
  const cache = block["cache_control"];
  return isObject(cache) ? cache : undefined;
}

export function unknownBlock(block: Json, place: RequestPath) {
  return fieldError(
    `${place}.type`,
    `a \`${String(block["type"])}\` block means nothing to the model server that serves this model; leave it out, or ask a model whose server speaks Messages itself.`,
  );
}

/** Writes a document that consists of blocks as these blocks. The title and context of the document come first. */
function documentParts(block: Json, place: RequestPath): Part[] {
  const cache = cacheOf(block);
  const title = textOf(block["title"]);
  const context = textOf(block["context"]);
  const before: Part[] = context ? [{ type: "text", text: context }] : [];
  const source = objectOf(block["source"]);
  const { content } = source;
  if (source["type"] !== "content") {
    return [...before, { type: "file", source: sourceOf(block, place), name: title, cache, place }];
  }
  if (typeof content === "string") {
    return [...before, { type: "file", source: { kind: "text", text: content }, name: title, cache, place }];
  }
  if (title) before.unshift({ type: "text", text: title });
  const parts = [...before, ...contentParts(content, `${place}.source`)];
  const last = parts.at(-1);
  // The last part gets the cache mark, so that the whole document is cached.
  return cache && last && last.type !== "audio" ? [...parts.slice(0, -1), { ...last, cache }] : parts;
}

function sourceOf(block: Json, place: RequestPath): MediaSource {
  const source = objectOf(block["source"]);
  const { data, media_type, url, file_id } = source;
  switch (source["type"]) {
    case "base64":
      if (typeof data === "string" && typeof media_type === "string") {
        return { kind: "data", mediaType: media_type, data };
      }
      throw fieldError(`${place}.source`, "a `base64` source has `media_type` and `data`.");
    case "text":
      if (typeof data === "string") return { kind: "text", text: data };
      throw fieldError(`${place}.source.data`, "a `text` source has its text here.");
    case "url":
      if (typeof url === "string") return { kind: "url", url };
      throw fieldError(`${place}.source.url`, "a `url` source has its address here.");
    case "file":
      if (typeof file_id === "string") return { kind: "id", id: file_id };
      throw fieldError(`${place}.source.file_id`, "a `file` source has the id of the file here.");
    default:
      throw fieldError(
        `${place}.source.type`,
        "it is one of `base64`, `text`, `url`, `file` and, of a document, `content`.",
      );
  }
}

function searchResultText(block: Json): string {
  const texts = objectsOf(block["content"]).map(({ text }) => textOf(text) ?? "");
  return [textOf(block["title"]), textOf(block["source"]), "", ...texts]
    .filter((line) => line !== undefined)
    .join("\n");
}
