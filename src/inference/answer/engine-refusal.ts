// Converts an engine's response that is no answer to an error of the gateway.
import type { BodySource } from "../../base/bytes/body-source.ts";
import { BlamelessError, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Engine, EngineResponse } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import { type Operation, operationPaths } from "../../domain/models/operation.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import {
  missingIn,
  type PublicFault,
  publicFault,
  saysUnpaid,
  tellsFlagged,
  unpaidReason,
} from "../../requests/dialects/engine-fault.ts";
import { retryAfterOf } from "../routing/retry-after.ts";

const maxErrorBody = 64 * 1024;
const maxCauseLength = 200;
/** Milliseconds to wait for the body of an error. After that, the status alone decides. */
const errorBodyMs = 3_000;
/** Values of Content-Encoding that mean no compression. Some servers send the character set. */
const noCoding = /^(?:identity|none|binary|utf-?8)?$/i;
/** Matches places such as `messages[0].content` and `messages.0.content`. */
const placePattern = /\b\w+(?:\[\d+\]|\.\d+\b)/;

/** Reports whether the error means that an engine did not answer, and not that the request is at fault. */
export function isEngineFault(error: GatewayError): boolean {
  return error.code === "upstream_error" || error.code === "upstream_timeout" || error.code === "service_unavailable";
}

/** Reports whether the engine is at fault, and not the client, the request or the gateway. */
export function isOfEngine(error: unknown): boolean {
  if (error instanceof BlamelessError) return false;
  return !(error instanceof GatewayError) || isEngineFault(error);
}

/**
 * Returns the error for a body that ended before its answer did. `engine` sent the body; its name is for the operator's
 * log.
 */
export function brokeOff(cause: unknown, engine: Pick<Engine, "name" | "redact"> | undefined): GatewayError {
  const message = "The model server broke off in the middle of the answer. Retry your request.";
  if (!engine) return new GatewayError("upstream_error", message, { cause });
  const said = cause instanceof Error ? `: ${engine.redact(cause.message).slice(0, maxCauseLength)}` : "";
  return new GatewayError("upstream_error", message, { cause, detail: `${engine.name} broke off${said}` });
}

/**
 * Returns the error for a successful status without an answer. `what` describes, for operators, what came in its place.
 */
export function noAnswer(what: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent no answer. Retry your request.", { detail: what });
}

/** Matches ids of files that were uploaded to this gateway. Azure's ids have the same form. */
const fileId = /\bfile-[\da-f]{32}\b/;
const hintOnFiles =
  "Model servers do not see files that were uploaded to this gateway: send the data of the file in the request.";

interface Verdict {
  error: GatewayError;
  /** True if other deployments would give the same response, so that no other one is tried. */
  final: boolean;
  /** True if the server reports that it lacks the endpoint. Its models may work in other formats. */
  lacksEndpoint?: boolean;
}

/**
 * Converts a refusal. `asked` is the dialect in which the engine was asked, which may differ from the client's.
 * `said` is the server's message, safe for operators; undefined if there is none. `text` is the body as it came.
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

/** Converts a 404: a missing object is the client's fault, a missing model or endpoint the server's. */
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

/** Adds a hint if the message names a file that may exist at this gateway. */
function withFileHint({ message, ...fault }: PublicFault): PublicFault {
  const hint = message !== undefined && fileId.test(message) ? ` ${hintOnFiles}` : "";
  return { ...fault, message: message === undefined ? undefined : `${message}${hint}` };
}

function ofServer(reason: string, detail: string): Verdict {
  return { error: new GatewayError("upstream_error", reason, { detail }), final: false };
}

/** The place in the error refers to a translated body that the client never saw. */
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
  // OpenAI returns 424 if an MCP server in the request fails. TGI returns 424, without a place, if TGI itself fails.
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
  // Anthropic returns 529 if its servers are overloaded.
  if (status === 429 || status === 503 || status === 529) {
    return { error: busy(request.model, status === 429, retryAfterOf(response.headers), detail), final: false };
  }
  if (status === 408 || status === 504) {
    return {
      error: new GatewayError("upstream_timeout", "The model server did not answer in time.", { detail }),
      final: false,
    };
  }
  const reason =
    status === 401 || status === 403
      ? "The model server refused the gateway's own credentials; its operator has to mend that."
      : "The model server failed.";
  return ofServer(reason, detail);
}

/**
 * Returns the error for a busy model. `engineLimited` is true if the engine's own rate limit refused the request, and
 * false if it has no free slot.
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
 * Throws `upstream_error` for an answer with a compression that the request did not allow; its bytes would look like
 * a broken answer. Nothing is decompressed: a few bytes may become gigabytes, and events would be delayed in the
 * decoder.
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

/** Reads the body up to limits of size and time. If the limits are exceeded, the status alone decides. */
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
