// The answer for a WebSocket endpoint if the request does not ask for one.
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

/** `instead` describes another way, as the end of a sentence. */
export function upgradeRequired(path: string, instead: string): PlainAnswer {
  const error = invalidRequest(
    `GET ${path} is a WebSocket: send \`Connection: Upgrade\` and \`Upgrade: websocket\`, ${instead}.`,
  );
  const headers = { "content-type": "application/json", upgrade: "websocket", connection: "upgrade" };
  return { status: 426, headers, body: renderError(error) };
}
