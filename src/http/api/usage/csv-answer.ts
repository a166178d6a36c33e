// Sends CSV in pieces, no faster than the client reads.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import { toGatewayError } from "../../../wire/errors.ts";
import { csvType } from "../../content/csv.ts";
import type { Exchange, StreamedAnswer } from "../../exchange/route.ts";

/**
 * Returns a streamed CSV answer. The first piece is computed before the answer begins, so that an early failure becomes
 * an error answer.
 */
export async function csvAnswer(exchange: Exchange, pieces: AsyncGenerator<string>): Promise<StreamedAnswer> {
  const first = await pieces.next();
  const log = exchange.defer();
  const { clientGone } = exchange.req;
  const begin = async (client: ClientStream) => {
    try {
      for (let piece = first; !piece.done && !clientGone.cancelled; piece = await pieces.next()) {
        const ready = client.write(Buffer.from(piece.value).toString("latin1"));
        if (!ready) await drained(client, clientGone);
      }
      client.end();
      log.finish();
    } catch (error) {
      // Closes the connection, because a truncated answer must not look complete.
      client.abort();
      // If the client left while a piece was computed, that is logged without an error.
      log.finish(clientGone.cancelled ? undefined : toGatewayError(error));
    }
  };
  return { status: 200, headers: { "content-type": csvType }, begin: (client) => void begin(client) };
}

/** Adds `Accept` to the header `Vary`, because the same URL may return JSON or CSV. */
export function variesByAccept({ answerHeaders }: Pick<Exchange, "answerHeaders">): void {
  answerHeaders["vary"] = answerHeaders["vary"] ? `${answerHeaders["vary"]}, Accept` : "Accept";
}

function drained(client: ClientStream, clientGone: Cancellation): Promise<void> {
  return new Promise((resolve) => {
    client.onDrain = resolve;
    clientGone.onCancel(resolve);
  });
}
