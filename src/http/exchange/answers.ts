// Sends the answers of routes. If an answer cannot begin, the connection is closed.
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { PausableChannel } from "../../http1/byte-channel.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import type { AnswerHeaders, PlainAnswer, StreamedAnswer, UpgradeAnswer } from "./route.ts";

/**
 * Returns the usual headers of an answer. The rate-limit headers, which are set later, have entries already, because
 * the runtime copies an object's properties when entries are added.
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
    // No other code would end the stream: the client would wait, and the connection would stay open forever.
    client.abort();
    throw error;
  }
}

/** `open` switches the connection to another protocol, or throws if that is impossible. */
export function upgradeTo(answer: UpgradeAnswer, open: () => PausableChannel): void {
  let channel: PausableChannel | undefined;
  try {
    channel = open();
    answer.upgrade(channel);
  } catch (error) {
    // No other code would close the channel.
    channel?.terminate();
    answer.abandoned?.();
    throw error;
  }
}
