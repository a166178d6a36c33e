// Converts an engine's error response into an error of the gateway.
import type { BodySource } from "../../base/bytes/body-source.ts";
import { BlamelessError, GatewayError, invalidRequest } from "../../base/errors.ts";
import { type Engine, EngineFault, type EngineResponse } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import { type Operation, operationPaths } from "../../domain/models/operation.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import {
  missingIn,
  type PublicFault,
  publicFault,
  saysKeyRefused,
  saysUnpaid,
  tellsFlagged,
  unpaidReason,
} from "../../requests/dialects/engine-fault.ts";
import { retryAfterOf } from "../routing/retry-after.ts";

const maxErrorBody = 64 * 1024;
const maxCauseLength = 200;
/** Maximum milliseconds to wait for the body of an error response. After that, only the status is used. */
const errorBodyMs = 3_000;
/** Values of Content-Encoding that mean no compression. Some servers wrongly send a character set there. */
const noCoding = /^(?:identity|none|binary|utf-?8)?$/i;
/** Matches paths in a request, such as `messages[0].content` and `messages.0.content`. */
const placePattern = /\b\w+(?:\[\d+\]|\.\d+\b)/;

const keyRefusedReason = "The model server refused the gateway's own credentials; its operator has to mend that.";

/** Reports whether the error means that the engine failed and the request is not at fault. */
export function isEngineFault(error: GatewayError): boolean {
  return error.code === "upstream_error" || error.code === "upstream_timeout" || error.code === "service_unavailable";
}

/** Reports whether the engine caused the error, rather than the client, the request or the gateway. */
export function isOfEngine(error: unknown): boolean {
  if (error instanceof BlamelessError) return false;
  return !(error instanceof GatewayError) || isEngineFault(error);
}

/** Returns the error for an answer that broke off. The name of `engine` only goes into the operator's log. */
export function brokeOff(cause: unknown, engine: Pick<Engine, "name" | "redact"> | undefined): GatewayError {
  const message = "The model server broke off in the middle of the answer. Retry your request.";
  if (!engine) return new EngineFault("broke_off", message, { cause });
  const said = cause instanceof Error ? `: ${engine.redact(cause.message).slice(0, maxCauseLength)}` : "";
  return new EngineFault("broke_off", message, { cause, detail: `${engine.name} broke off${said}` });
}

/**
 * Returns the error for a response with a successful status but no usable answer. `what` says in the log what was
 * received.
 */
export function noAnswer(what: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent no answer. Retry your request.", { detail: what });
}

/** Matches ids of files in this gateway. Azure's ids look the same. */
const fileId = /\bfile-[\da-f]{32}\b/;
const hintOnFiles =
  "Model servers do not see files that were uploaded to this gateway: send the data of the file in the request.";

interface Verdict {
  error: GatewayError;
  /** True if no other deployment is tried, because it would respond in the same way. */
  final: boolean;
  /** True if the model server has no such endpoint. It may still serve the model through another API. */
  lacksEndpoint?: boolean;
}

/**
 * Converts an error response of an engine. `asked` is the operation that was sent to the engine. `said` in the result
 * is the engine's message for the operator, if any.
 */
export async function refusalOf(
  response: EngineResponse,
  deployment: Deployment,
  request: DecodedRequest,
  asked: Operation,
): Promise<Verdict & { said: string | undefined; text: string }> {
  const text = await readStart(response.body);
  const fault = withFileHint(publicFault(text, deployment.engine));
  const publicised = asked === request.operation ? fault : ofAnotherFormat(fault, asked);
  const detail = `${deployment.engine.name} answered ${response.status} for ${deployment.model} at ${operationPaths[asked]}`;
  if (response.status === 402 || (response.status >= 400 && response.status < 500 && saysUnpaid(text))) {
    const unpaid = `${detail}: its account there has no credit or quota left`;
    const error = new GatewayError("upstream_error", unpaidReason, { detail: unpaid });
    return { error, final: false, said: fault.message, text };
  }
  if (response.status === 400 && saysKeyRefused(text)) {
    const error = new EngineFault("authentication", keyRefusedReason, { detail });
    return { error, final: false, said: fault.message, text };
  }
  if (response.status === 403 && tellsFlagged(text)) {
    const reason = fault.message ?? "The provider's moderation flagged the input.";
    const options = { detail, engineCode: "content_filter" as const };
    return { error: invalidRequest(reason, options), final: true, said: fault.message, text };
  }
  if (response.status === 404) {
    const isNamed = (id: string) =>
      ![request.model, deployment.model].some((model) => model.includes(id)) && request.bytes.view.includes(id);
    return { ...missing(missingIn(text, isNamed), publicised, request, asked, detail), said: fault.message, text };
  }
  return { ...verdictOn(response, publicised, request, detail), said: fault.message, text };
}

/**
 * Converts a 404. If an object is missing, the client is at fault. If the model or the endpoint is missing, the server
 * is at fault.
 */
function missing(
  what: ReturnType<typeof missingIn>,
  { message: said, ...fault }: PublicFault,
  { model }: DecodedRequest,
  asked: Operation,
  detail: string,
): Verdict {
  if (what === "object" && said !== undefined) {
    return { error: invalidRequest(said, { detail, ...fault }), final: true };
  }
  if (what === "model") return ofServer(`The model server does not serve \`${model}\` at the moment.`, detail);
  const reason = "it has no such endpoint, or does not serve the model.";
  return {
    ...ofServer(`The model server of \`${model}\` answers 404 at ${operationPaths[asked]}: ${reason}`, detail),
    lacksEndpoint: what === "endpoint",
  };
}

/** Adds a hint if the message contains the id of a file that may be in this gateway. */
function withFileHint({ message, ...fault }: PublicFault): PublicFault {
  const hint = message !== undefined && fileId.test(message) ? ` ${hintOnFiles}` : "";
  return { ...fault, message: message === undefined ? undefined : `${message}${hint}` };
}

function ofServer(reason: string, detail: string): Verdict {
  return { error: new GatewayError("upstream_error", reason, { detail }), final: false };
}

/**
 * Removes `param`, and adds to the message which format it refers to, because the client's request was in another
 * format.
 */
function ofAnotherFormat({ message, engineCode, param }: PublicFault, asked: Operation): PublicFault {
  const isPlaced =
    message !== undefined && engineCode === undefined && (param !== undefined || placePattern.test(message));
  const said = isPlaced
    ? `The model server, asked in the format of ${dialects[asked].endpoint}, says: ${message}`
    : message;
  return { message: said, engineCode, param: undefined };
}

function verdictOn(
  response: EngineResponse,
  { message: said, ...fault }: PublicFault,
  request: DecodedRequest,
  detail: string,
): Verdict {
  const { status } = response;
  // OpenAI answers 424 if an MCP server in the request fails, and names the path. TGI answers 424 without a path if TGI
  // itself fails.
  if (status === 400 || status === 422 || (status === 424 && fault.param !== undefined)) {
    return {
      error: invalidRequest(said ?? "The model server refused the request.", { detail, ...fault }),
      final: true,
    };
  }
  if (status === 413) {
    return {
      error: new GatewayError("request_too_large", said ?? "The request is too large for this model.", {
        detail,
        ...fault,
      }),
      final: true,
    };
  }
  // Anthropic answers 529 if its servers are overloaded.
  if (status === 429 || status === 503 || status === 529) {
    return { error: busy(request.model, status === 429, retryAfterOf(response.headers), detail), final: false };
  }
  if (status === 408 || status === 504) {
    return {
      error: new GatewayError("upstream_timeout", "The model server did not answer in time.", { detail }),
      final: false,
    };
  }
  const reason = status === 401 || status === 403 ? keyRefusedReason : "The model server failed.";
  return ofServer(reason, detail);
}

/**
 * Returns the error for a busy model. `engineLimited` is true if the engine's own rate limit refused the request, and
 * false if the engine has no free slot.
 */
function busy(model: string, engineLimited: boolean, retryAfterSeconds: number, detail: string): GatewayError {
  const why = engineLimited
    ? `The model server of \`${model}\` is at its own rate limit now.`
    : `The model \`${model}\` has no free capacity now.`;
  return new GatewayError("service_unavailable", `${why} Retry in ${retryAfterSeconds} s.`, {
    ...{ detail, retryAfterSeconds, engineLimited },
    refusal: "capacity",
  });
}

/**
 * Throws `upstream_error` if the answer is compressed although the request did not allow that. The answer is not
 * decompressed, because a few bytes can become gigabytes.
 */
export function requireUncompressed(
  { headers, body }: EngineResponse,
  { name }: Pick<Deployment["engine"], "name">,
): void {
  const coding = headers.get("content-encoding");
  if (coding === null || noCoding.test(coding.trim())) return;
  body.cancel();
  throw new GatewayError("upstream_error", "The model server compressed its answer, though that was not asked for.", {
    detail: `${name} sent content-encoding ${coding.slice(0, 32)}; switch compression off there, or in the proxy before it`,
  });
}

/**
 * Reads the body of an error response within limits of size and time. If the body exceeds them, returns the part that
 * has arrived.
 */
function readStart(body: BodySource): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      body.cancel();
      resolve(text);
    };
    const timer = setTimeout(stop, errorBodyMs);
    body.flow({
      data(bytes) {
        text += decoder.decode(bytes.view, { stream: true });
        if (text.length > maxErrorBody) stop();
      },
      end: stop,
      fail: stop,
    });
  });
}
