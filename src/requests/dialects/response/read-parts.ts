// Reads the parts of messages and of tool results in a Responses request.
import { fieldError } from "../../../base/errors.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type { MediaSource, Part } from "../conversation/conversation.ts";
import { isObject, type Json, textOf } from "./json.ts";

/** Types of the parts that this file can read. */
export const partTypes: ReadonlySet<unknown> = new Set([
  ...["input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio"],
]);

/**
 * Reads the parts of a message's content. Throws `invalid_request` if a part cannot be expressed in any other format.
 */
export function readParts(content: unknown, place: string): Part[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown, index) => (isObject(part) ? [readPart(part, `${place}[${index}]`)] : []));
}

function readPart(part: Json, place: string): Part {
  const cache = cacheOf(part);
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: textOf(part["text"]) ?? "", cache };
    case "refusal":
      return { type: "text", text: textOf(part["refusal"]) ?? "" };
    case "input_image":
      return {
        type: "image",
        source: sourceOf(part, "image_url", place),
        detail: detailOf(part["detail"]),
        cache,
        place,
      };
    case "input_file":
      return { type: "file", source: fileSource(part, place), name: textOf(part["filename"]), cache, place };
    case "input_audio":
      return readAudio(part, place);
    default:
      throw fieldError(
        `${place}.type`,
        `\`${String(part["type"])}\` cannot be told to this model's server. Send input_text, input_image, input_file or input_audio.`,
      );
  }
}

/** Returns the detail of an image. Returns undefined for `auto`, which means the same as no value. */
function detailOf(detail: unknown): string | undefined {
  return detail === "auto" ? undefined : textOf(detail);
}

function readAudio(part: Json, place: string): Part {
  const audio = isObject(part["input_audio"]) ? part["input_audio"] : part;
  const [data, format] = [textOf(audio["data"]), textOf(audio["format"])];
  if (data === undefined || format === undefined)
    throw fieldError(place, "must have `data` in base64, and its `format`.");
  return { type: "audio", data, format, place };
}

/** Reads the source of a part. The source is a URL, a data URL, or a file id. */
function sourceOf(part: Json, member: string, place: string): MediaSource {
  const url = textOf(part[member]);
  const id = textOf(part["file_id"]);
  if (url !== undefined) return urlSource(url);
  if (id !== undefined) return { kind: "id", id };
  throw fieldError(place, `must have \`${member}\` or \`file_id\`.`);
}

function fileSource(part: Json, place: string): MediaSource {
  const data = textOf(part["file_data"]);
  if (data === undefined) return sourceOf(part, "file_url", place);
  // In an older form, the data are base64 without a data URL. Such a file is always a PDF.
  return data.startsWith("data:") ? urlSource(data) : { kind: "data", mediaType: "application/pdf", data };
}

function urlSource(url: string): MediaSource {
  const found = /^data:([^;,]*)(?:;[^,]*)?;base64,/i.exec(url.slice(0, 256));
  if (!found) return { kind: "url", url };
  return { kind: "data", mediaType: found[1] ?? "", data: url.slice(found[0].length) };
}
