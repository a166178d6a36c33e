// The answers of routes as the connection takes them; what fails to begin is broken off.
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { PausableChannel } from "../../http1/byte-channel.ts";
import { contentTypeOptions } from "./browser-headers.ts";
import type { AnswerHeaders, PlainAnswer, StreamedAnswer, UpgradeAnswer } from "./route.ts";

/** With a place for what most answers have next, in its order: one that grows is copied as it does. */
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

export async function plainAnswerOf(response: Response): Promise<PlainAnswer> {
  const body = await response.bytes();
  return { status: response.status, headers: Object.fromEntries(response.headers), body };
}

export function beginStream(answer: StreamedAnswer, client: ClientStream): void {
  try {
    answer.begin(client);
  } catch (error) {
    // Nobody else would end it: the client would wait, and the connection be held, for ever.
    client.abort();
    throw error;
  }
}

/** `open` makes the connection another protocol's; throws where that cannot be. */
export function upgradeTo(answer: UpgradeAnswer, open: () => PausableChannel): void {
  let channel: PausableChannel | undefined;
  try {
    channel = open();
    answer.upgrade(channel);
  } catch (error) {
    // Nobody else would end it.
    channel?.terminate();
    answer.abandoned?.();
    throw error;
  }
}
