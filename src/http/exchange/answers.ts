// Sends the answers of routes. If sending cannot begin, the connection is closed.
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { PausableChannel } from "../../http1/byte-channel.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import type { AnswerHeaders, PlainAnswer, StreamedAnswer, UpgradeAnswer } from "./route.ts";

/**
 * Returns the default headers. Rate-limit headers are present with the value undefined, because adding properties later
 * would copy the object.
 */
export function firstHeaders(requestId: string): AnswerHeaders {
  return {
    "x-request-id": requestId,
    "x-content-type-options": contentTypeOptions,
    "x-ratelimit-limit-requests": undefined,
    "x-ratelimit-remaining-requests": undefined,
    "x-ratelimit-reset-requests": undefined,
    "x-ratelimit-limit-tokens": undefined,
    "x-ratelimit-remaining-tokens": undefined,
    "x-ratelimit-reset-tokens": undefined,
  };
}

export async function plainAnswerOf(response: Response): Promise<PlainAnswer & { body: Uint8Array }> {
  const body = await response.bytes();
  return { status: response.status, headers: Object.fromEntries(response.headers), body };
}

export function beginStream(answer: StreamedAnswer, client: ClientStream): void {
  try {
    answer.begin(client);
  } catch (error) {
    // Without `abort`, the stream would never end, and the client would wait forever.
    client.abort();
    throw error;
  }
}

/** Upgrades the connection. `open` switches the protocol, or throws if the connection cannot be upgraded. */
export function upgradeTo(answer: UpgradeAnswer, open: () => PausableChannel): void {
  let channel: PausableChannel | undefined;
  try {
    channel = open();
    answer.upgrade(channel);
  } catch (error) {
    // If `answer.upgrade` threw, no other code closes the channel.
    channel?.terminate();
    answer.abandoned?.();
    throw error;
  }
}
