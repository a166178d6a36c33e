// Handles a request that another replica forwards to this process, because this process holds the connection of the
// node.

import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { byteTextOf } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { forbidden, GatewayError } from "../../base/errors.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import { bodyDigest, type ForwardVerifier } from "../../nodes/forward-signature.ts";
import {
  type AboutRequest,
  errorText,
  type ForwardOutcome,
  faultTrailer,
  forwardHeaders,
  readAbout,
} from "../../nodes/forward-wire.ts";
import type { NodeDirectory } from "../../nodes/node-directory.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { toGatewayError } from "../../wire/errors.ts";
import { readBytes } from "../content/body.ts";
import type { Answer, Exchange } from "./route.ts";

export interface ForwardedRequestDeps {
  forwardVerifier: Pick<ForwardVerifier, "verify">;
  nodeDirectory: Pick<NodeDirectory, "local">;
  replicaId: string;
  openRequests: Pick<OpenRequests, "lend">;
  requestLimits(): BodyLimits;
}

/** Maximum bytes by which a forwarded body may exceed the limit for client bodies, because the gateway adds members. */
const addedBytes = 4_096;
/** The headers of the node's answer that are passed on. */
const passedHeaders = ["content-type", "retry-after", "mcp-session-id"] as const;

export async function forwardedRequest(exchange: Exchange, deps: ForwardedRequestDeps): Promise<Answer> {
  const { req, params } = exchange;
  const about = req.headers.get(forwardHeaders.about) ?? "";
  const digest = req.headers.get(forwardHeaders.digest) ?? "";
  const request = {
    method: req.method,
    path: req.target,
    replicaId: req.headers.get(forwardHeaders.replica) ?? "",
    about,
    bodyDigest: digest,
  };
  const signature = req.headers.get(forwardHeaders.signature) ?? "";
  // The body is only read after the signature was verified.
  if (!deps.forwardVerifier.verify(request, signature)) throw notSigned();
  // The other replica addressed an earlier process at this address, whose node connections are gone.
  if (request.replicaId !== deps.replicaId) return outcome("not_there", "");
  const asked = readAbout(about);
  if (!asked) throw notSigned();
  const memoryAccount = memoryAccountOf(asked, exchange, deps);
  req.memoryAccount = memoryAccount;
  exchange.line["forwarded_id"] = asked.requestId;
  if ("server" in asked) exchange.line["tool_server"] = asked.server;
  else exchange.line["model"] = asked.model;
  let body: ByteSpan;
  try {
    body = await readBytes(req, deps.requestLimits().bodyBytes + addedBytes);
  } catch (error) {
    return failed(error, exchange);
  }
  if (bodyDigest(body) !== digest) throw notSigned();
  const end = deps.nodeDirectory.local(params["id"] ?? "");
  if (!end || end.closed) return outcome("not_there", "");
  try {
    return passOn(await end.send({ ...asked, body, memoryAccount }, req.clientGone), exchange);
  } catch (error) {
    return failed(error, exchange);
  }
}

/** Answers with the error. If the other replica has closed its request, rethrows the error. */
function failed(error: unknown, { req, line }: Exchange): Answer {
  if (req.clientGone.cancelled) throw error;
  const fault = toGatewayError(error);
  line["code"] = fault.code;
  if (fault.detail !== undefined) line["detail"] = fault.detail;
  return outcome("error", errorText(fault));
}

/**
 * Returns the memory account of the key that the forwarded request names. The account is released when the request
 * ends.
 */
function memoryAccountOf(
  { holder }: AboutRequest,
  { req }: Exchange,
  { openRequests }: ForwardedRequestDeps,
): MemoryAccount {
  if (!holder) return bufferedBytes.replicas;
  const slot = openRequests.lend(holder);
  req.onOver({ over: () => slot.release() });
  return slot.memoryAccount;
}

/** Returns an answer with the outcome in a header. The other replica ignores the status. */
function outcome(what: ForwardOutcome, body: string): Answer {
  return { status: 502, headers: { "content-type": "application/json", [forwardHeaders.outcome]: what }, body };
}

function passOn({ status, headers, body }: EngineResponse, exchange: Exchange): Answer {
  const passed: Record<string, string> = { [forwardHeaders.outcome]: "answer" satisfies ForwardOutcome };
  for (const name of passedHeaders) {
    const value = headers.get(name);
    if (value !== null) passed[name] = value;
  }
  const log = exchange.defer();
  const begin = (client: ClientStream) => {
    const { clientGone } = exchange.req;
    const leave = () => {
      body.cancel();
      log.finish();
    };
    const over = () => {
      clientGone.off(leave);
      log.finish();
    };
    clientGone.onCancel(leave);
    if (clientGone.cancelled) return;
    client.onDrain = () => body.resume();
    body.flow({
      data(bytes) {
        if (!client.write(byteTextOf(bytes))) body.pause();
      },
      end() {
        over();
        client.end();
      },
      fail(error) {
        over();
        client.abort(faultTrailer(error instanceof GatewayError ? error : brokeOff(error)));
      },
    });
  };
  return { status, headers: passed, begin };
}

function brokeOff(cause: unknown): GatewayError {
  return new GatewayError(
    "upstream_error",
    "The model server broke off in the middle of the answer. Retry your request.",
    { cause },
  );
}

function notSigned(): GatewayError {
  return forbidden("This is for the replicas of this installation.", {
    detail: "forward not signed by this installation, replayed, or a clock is wrong by more than 30 s",
  });
}
