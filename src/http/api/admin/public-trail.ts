// Removes the model servers' own words from a trail, unless they are known phrases that quote no request.
import type { z } from "zod";
import type { oneRequest } from "../usage/request-wire.ts";

type Steps = z.infer<typeof oneRequest>["trail"];

/** Results whose reason may be a text of the model server. The gateway itself writes the reasons of the others. */
const saidByServer: ReadonlySet<string> = new Set(["refused", "broke_off", "timed_out", "unreachable", "cancelled"]);

const place = String.raw`(?:[\w.[\]-]{1,128}: )?`;
/** Beginnings of messages, without anything that a client chose. */
const phrases = [
  "CUDA out of memory",
  "[Oo]ut of memory",
  "[Cc]onnection (?:error|refused|reset by peer|closed)",
  "[Ii]nternal [Ss]erver [Ee]rror",
  "[Bb]ad [Gg]ateway",
  "[Ss]ervice (?:[Tt]emporarily )?[Uu]navailable",
  "[Gg]ateway [Tt]ime-?out",
  "[Uu]nauthorized",
  "[Ff]orbidden",
  "[Nn]ot [Ff]ound",
  "[Tt]oo [Mm]any [Rr]equests",
  "[Oo]verloaded",
  "Rate limit reached",
  "You exceeded your current quota",
  "Incorrect API key provided",
  "invalid x-api-key",
  String.raw`This model's maximum context length is \d{1,9} tokens`,
  "The server had an error while processing your request",
  `${place}Field required`,
  `${place}Extra inputs are not permitted`,
  String.raw`${place}Input should be (?:a valid \w{1,20}|(?:greater|less) than(?: or equal to)? -?[\d.]{1,12})`,
].map((phrase) => new RegExp(`^(?:${phrase})(?![\\w-])`));
/** The gateway's descriptions of a failed connection, after the name of the model server. */
const connectionFault =
  /^(?:[\w.-]{1,64}: )?(?:(?:connect |getaddrinfo |read |write )?E[A-Z]{4,20}\b[^"']{0,80}|no answer began within [\d.]+ s, far longer than any before|more than \d+ bytes)$/;

/** Returns the steps with only those parts of the reasons that contain no content. */
export function publicTrail(steps: Steps): Steps {
  return steps.map((step) => ({
    ...step,
    reason: saidByServer.has(step.result) ? publicReason(step.reason) : step.reason,
  }));
}

/** Returns the known phrases of a model server's message, which has one part for each faulty place of a request. */
export function publicReason(reason: string | null): string | null {
  if (reason === null || connectionFault.test(reason)) return reason;
  const known = reason.split("; ").map((part) => phrases.map((phrase) => phrase.exec(part)?.[0]).find(Boolean));
  const shown = known.filter((part) => part !== undefined);
  if (shown.length === 0) return null;
  return shown.length === known.length && shown.join("; ") === reason ? reason : `${shown.join("; ")} …`;
}
