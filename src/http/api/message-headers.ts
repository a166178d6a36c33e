// Reads the headers of Anthropic's Messages API: its version and beta features.
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
 * Reads the headers, and checks that the body fits their API version. Throws `invalid_request` for an unknown version.
 * A missing version is accepted, which Anthropic refuses.
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
  // The default version needs no check, so the body need not be parsed here.
  if (version !== defaultMessageVersion) requireVersion(request.body, version);
  return { version, betas };
}
