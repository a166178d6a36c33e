// Hands one request over: the request is forwarded unchanged, and its answer is returned as it arrives. A failure of
// one side ends the other.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { CancelListener } from "../base/cancellation.ts";
import { exactMs } from "../base/clock.ts";
import { whenSettled } from "../base/deferred.ts";
import type { Http1Client } from "../http1/client/client.ts";
import {
  ClientError,
  type PassedParts,
  type PassedRequest,
  type PassedResponse,
} from "../http1/client/client-contract.ts";
import type { AnswerFields, HeaderLines, PassableRequest, Reply } from "../http1/message.ts";
import { peerLine } from "../http1/peer-line.ts";
import { spliced } from "./spliced-connection.ts";

/**
 * Fields that describe the body as the client sent it. They do not apply to a body that the worker has read and
 * decoded.
 */
const sentBodyFields: ReadonlySet<string> = new Set([
  ...["content-length", "transfer-encoding", "expect"],
  ...["content-encoding", "content-digest", "content-md5"],
]);
const none: ReadonlySet<string> = new Set();

/**
 * Milliseconds after which a primary process that refuses connections counts as gone. While it is busy and hundreds of
 * connections wait, the kernel refuses more.
 */
const reachableWithinMs = 1_000;
const againMs = 20;

export interface UnreachableAnswer {
  status: number;
  headers: AnswerFields;
  body: string;
}

type Unreachable = (request: PassableRequest) => UnreachableAnswer;

export class HandedRequest implements BodySink, PassedParts, CancelListener {
  readonly #client: Http1Client;
  readonly #request: PassableRequest;
  readonly #reply: Reply;
  readonly #body: ByteSpan | undefined;
  readonly #unreachable: Unreachable;
  readonly #startedMs = exactMs();
  #response: PassedResponse | undefined;
  /** The length of the answer's body if it is known and nothing was sent yet. */
  #length = 0;
  #fields: AnswerFields = {};
  #stream: ClientStream | undefined;

  /** `body` is the whole body without its content coding, if the worker has read it. */
  constructor(
    client: Http1Client,
    request: PassableRequest,
    reply: Reply,
    body: ByteSpan | undefined,
    unreachable: Unreachable,
  ) {
    this.#client = client;
    this.#request = request;
    this.#reply = reply;
    this.#body = body;
    this.#unreachable = unreachable;
    // The buffered part of an answer is limited by read-ahead. Only the primary process knows the key's memory account.
    request.memoryAccount = bufferedBytes.bounded;
  }

  send(): void {
    const body = this.#body;
    const request: PassedRequest = {
      method: this.#request.method,
      head: this.#head(),
      passed: this,
      ...(body ? { body } : {}),
    };
    whenSettled(this.#client.pass(request, this.#request.clientGone), onResponse, onFault, this);
  }

  upload(): BodySource | undefined {
    return this.#body || !this.#request.hasBody ? undefined : this.#request.passBody();
  }

  onContinue(): void {
    this.#request.sendContinue();
  }

  answered(response: PassedResponse): void {
    this.#response = response;
    this.#fields = fieldsOf(response.headers);
    const { status, headers } = response;
    if (status === 101) {
      this.#upgrade(response);
      return;
    }
    this.#request.clientGone.onCancel(this);
    const length = headers.get("content-length");
    this.#length = Number(length ?? 0);
    const isWhole = this.#length > 0 && this.#request.method !== "HEAD" && status !== 304;
    if (!isWhole) this.#begin(length === null ? undefined : this.#length);
    response.body.flow(this);
  }

  fault(error: unknown): void {
    const { clientGone } = this.#request;
    if (clientGone.cancelled) return;
    const isRefused = error instanceof ClientError && error.fault === "connect";
    if (isRefused && exactMs() - this.#startedMs < reachableWithinMs) {
      setTimeout(() => this.send(), againMs);
      return;
    }
    this.#refuse();
  }

  data(bytes: ByteSpan): void {
    this.piece(bytes.buffer, bytes.start, bytes.end);
  }

  piece(bytes: Buffer, start: number, end: number): void {
    if (!this.#stream && end - start === this.#length) {
      this.#reply.send(this.#response?.status ?? 0, this.#fields, new ByteSpan(bytes, start, end));
      return;
    }
    const stream = this.#stream ?? this.#begin(this.#length);
    if (!stream.writeAround("", bytes, start, end, "")) this.#response?.body.pause();
  }

  end(): void {
    this.#request.clientGone.off(this);
    const trailers = this.#response?.trailers?.lines(none).slice(0, -"\r\n".length);
    if (trailers) this.#stream?.abort(trailers);
    else this.#stream?.end();
  }

  /** Breaks off an answer that has begun. */
  fail(): void {
    this.#request.clientGone.off(this);
    if (this.#reply.begun) this.#stream?.abort();
    else this.#refuse();
  }

  /** Called if the client disconnects during the answer. */
  cancelled(): void {
    this.#response?.body.cancel();
  }

  #head(): string {
    const { method, target, version, peer } = this.#request;
    const lines = this.#request.fieldLines(this.#body ? sentBodyFields : none);
    return `${peerLine(peer)}${method} ${target} HTTP/${version}\r\n${lines}`;
  }

  #begin(length: number | undefined): ClientStream {
    const stream = this.#reply.stream(this.#response?.status ?? 0, this.#fields, length);
    stream.onDrain = () => this.#response?.body.resume();
    this.#stream = stream;
    return stream;
  }

  #upgrade(response: PassedResponse): void {
    try {
      spliced(this.#reply.upgrade(this.#fields), response);
    } catch {
      // The client has left, or speaks HTTP/1.0 and cannot upgrade.
      response.body.cancel();
      this.#refuse();
    }
  }

  #refuse(): void {
    const { status, headers, body } = this.#unreachable(this.#request);
    this.#reply.send(status, headers, body);
  }
}

function onResponse(response: PassedResponse, handed: HandedRequest): void {
  handed.answered(response);
}

function onFault(error: unknown, handed: HandedRequest): void {
  handed.fault(error);
}

/** The primary process sends each header field only once. */
function fieldsOf(headers: HeaderLines): AnswerFields {
  const fields: Record<string, string> = {};
  for (const name of headers.keys()) fields[name] = headers.get(name) ?? "";
  return fields;
}
