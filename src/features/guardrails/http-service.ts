// A guardrail that asks the operator's HTTP service whether texts may pass, or how to mask them.
import { NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HttpGuardrail } from "./model.ts";
import type { Ask, Verdict } from "./side-guard.ts";

/** The maximum number of concurrent requests to one service. Further requests fail, because there is no queue. */
const maxAtOnce = 512;
/** Maximum bytes of the service's answer, in addition to four times the length of the request body. */
const answerBytes = 64 * 1024;

export function httpAsk({ url, token, timeoutMs, local }: HttpGuardrail): Ask {
  let underWay = 0;
  return async (texts, side, { requestId, model, clientGone, memoryAccount, neverLeaves }) => {
    if (neverLeaves && !local) throw misunderstood("it is not local, and the texts must not leave");
    if (underWay >= maxAtOnce) throw tooMany();
    const aborted = new AbortController();
    const stop = () => aborted.abort();
    const body = JSON.stringify({ side, model, request_id: requestId, texts: texts.map(({ text }) => text) });
    const maxBytes = 4 * body.length + answerBytes;
    // Memory for the texts of a request, and for this copy of them, was reserved when the check began. For an answer,
    // memory for the copy is reserved here.
    const bytes = side === "request" ? 0 : body.length;
    const refusal = bytes > 0 ? memoryAccount.take("requests", bytes) : undefined;
    if (refusal) throw refusal;
    const timer = setTimeout(stop, timeoutMs);
    clientGone.onCancel(stop);
    underWay++;
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) },
        body,
        redirect: "manual",
        signal: aborted.signal,
      });
      if (response.status !== 200) throw misunderstood(`status ${response.status}`);
      return verdictIn(await textOf(response, maxBytes), texts.length);
    } finally {
      underWay--;
      memoryAccount.release("requests", bytes);
      clearTimeout(timer);
      clientGone.off(stop);
      // Closes the connection without reading the rest of the answer.
      aborted.abort();
    }
  };
}

async function textOf({ body }: Response, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > maxBytes) throw misunderstood("too long an answer");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Parses the answer of the service. Throws if the answer does not follow the protocol. */
function verdictIn(answer: string, count: number): Verdict {
  const { action, texts } = (JSON.parse(answer) ?? {}) as Record<string, unknown>;
  if (action === "pass" || action === "block") return { action };
  const isMask = action === "mask" && Array.isArray(texts) && texts.length === count;
  if (!isMask || !texts.every((text) => typeof text === "string")) throw misunderstood("no answer of the protocol");
  return { action, texts };
}

function tooMany(): NoRoomError {
  const message = `A guardrail's service has ${maxAtOnce} requests under way, the most that it may. Retry in 1 second.`;
  return new NoRoomError("service_unavailable", message, { retryAfterSeconds: 1 });
}

function misunderstood(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The service of a guardrail does not answer as it should.", { detail });
}
