// A request as a route gets it, and its answer as a web Response: for tests of routes without a server.
import { bodyOf as sourceOf } from "../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan, type Bytes } from "../../src/base/bytes/byte-span.ts";
import type { ClientStream } from "../../src/base/bytes/client-stream.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import type { MaybePromise } from "../../src/base/deferred.ts";
import { errorAnswer } from "../../src/http/exchange/errors.ts";
import type { Answer, Exchange } from "../../src/http/exchange/route.ts";
import type { IncomingRequest } from "../../src/http1/message.ts";
import { toGatewayError } from "../../src/wire/errors.ts";

export interface RequestParts {
  method?: string;
  target: string;
  headers?: Record<string, string>;
  peer?: string;
  /** Text as it is; anything else becomes JSON with its header. */
  body?: unknown;
}

export function incoming({ method = "GET", target, headers = {}, peer = "127.0.0.1", body }: RequestParts) {
  const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
  const fields = new Headers(body === undefined ? headers : { "content-type": "application/json", ...headers });
  const bytes = ByteSpan.of(text ?? "");
  let bodyRead = text === undefined;
  return {
    method,
    version: "1.1" as const,
    target,
    headers: fields,
    peer,
    hasBody: text !== undefined,
    bodyIsHere: true,
    memoryAccount: bufferedBytes.visitors,
    hold: () => undefined,
    get bodyRead() {
      return bodyRead;
    },
    readBody() {
      bodyRead = true;
      return bytes;
    },
    flowBody() {
      bodyRead = true;
      return sourceOf(bytes.view);
    },
    clientGone: new Cancellation(),
    onOver: () => {},
  } satisfies IncomingRequest;
}

export interface TestExchange extends Exchange {
  answerHeaders: Record<string, string>;
  /** How deferred answers ended: an error's code, or `ok`. */
  ended: string[];
}

export function exchangeFor(req: IncomingRequest, given: Partial<TestExchange> = {}): TestExchange {
  const ended: string[] = [];
  return {
    req,
    params: {},
    requestId: "req_1",
    clientAddress: "127.0.0.1",
    isLocal: () => true,
    isOwnMachine: () => false,
    releaseWhenOver: () => {},
    whyNotLocal: () => undefined,
    message: () => {
      throw new Error("It is no connection for messages.");
    },
    answerHeaders: {},
    line: {},
    defer: () => ({ finish: (error) => void ended.push(error?.code ?? "ok") }),
    ended,
    ...given,
  };
}

/** What the client gets of a handler's answer, or of what it throws. */
export async function responseOf(handle: () => Answer | MaybePromise<Answer>): Promise<Response> {
  const answer = await (async () => handle())().catch((error: unknown) => errorAnswer(toGatewayError(error)));
  if (answer instanceof Response) return answer;
  const { status, headers } = answer;
  if ("upgrade" in answer) return new Response(null, { status, headers });
  if (!("begin" in answer)) return new Response(bodyOf(answer.body), { status, headers });
  return new Response(await collected(answer.begin), { status, headers });
}

function bodyOf(body: string | Uint8Array | Bytes): Buffer<ArrayBuffer> {
  return Buffer.from(typeof body === "string" || body instanceof Uint8Array ? body : body.solid.view);
}

function collected(begin: (client: ClientStream) => void): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    let text = "";
    begin({
      write(bytes) {
        text += bytes;
        return true;
      },
      writeAround(before, bytes, start, end, after) {
        return this.write(before + bytes.toString("latin1", start, end) + after);
      },
      onDrain: undefined,
      end: () => resolve(Buffer.from(text, "latin1")),
      abort: () => reject(new Error("The answer was broken off.")),
    });
  });
}
