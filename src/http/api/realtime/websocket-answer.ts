// The error answer for a request to a WebSocket endpoint that does not ask for a WebSocket.
import { z } from "zod";
import { invalidRequest } from "../../../base/errors.ts";
import { renderError } from "../../../wire/errors.ts";
import type { PlainAnswer, RouteDoc } from "../../exchange/route.ts";

export const noWebSocket: NonNullable<RouteDoc["otherResponses"]> = {
  426: {
    name: "UpgradeRequired",
    description: "The request asks for no WebSocket.",
    json: z.looseObject({ error: z.looseObject({ message: z.string() }) }),
  },
};

/** Returns the error answer for `path`. `instead` completes the sentence that says how to connect. */
export function upgradeRequired(path: string, instead: string): PlainAnswer {
  const error = invalidRequest(
    `GET ${path} is a WebSocket: send \`Connection: Upgrade\` and \`Upgrade: websocket\`, ${instead}.`,
  );
  const headers = { "content-type": "application/json", upgrade: "websocket", connection: "upgrade" };
  return { status: 426, headers, body: renderError(error) };
}
