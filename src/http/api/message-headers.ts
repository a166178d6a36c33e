// The headers of a Messages client: the version of the API, and its beta features.
import { fieldError } from "../../base/errors.ts";
import {
  areBetas,
  defaultMessageVersion,
  type MessageHeaders,
  maxBetasLength,
  messageVersions,
} from "../../domain/models/message-headers.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { requireVersion } from "../../requests/dialects/message/version.ts";

/**
 * Checks the request against the version that it names. Throws `invalid_request` for an unknown version, as Anthropic
 * does. A missing version, which Anthropic refuses, is accepted here.
 */
export function readMessageHeaders(headers: IncomingRequest["headers"], request: DecodedRequest): MessageHeaders {
  const named = headers.get("anthropic-version") ?? defaultMessageVersion;
  const version = messageVersions.find((known) => known === named);
  if (version === undefined) {
    throw fieldError("anthropic-version", `must be a version that there is: ${messageVersions.join(" or ")}.`);
  }
  const betas = headers.get("anthropic-beta")?.trim() || undefined;
  if (betas !== undefined && !areBetas(betas)) {
    throw fieldError("anthropic-beta", `must be names of at most ${maxBetasLength} characters in all, in ASCII.`);
  }
  // Only a version other than the default is worth parsing the body for this check.
  if (version !== defaultMessageVersion) requireVersion(request.body, version);
  return { version, betas };
}
