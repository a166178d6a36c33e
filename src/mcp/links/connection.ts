// A connection to a server of tools by the protocol's own client, past which requests and answers go as they are.
import {
  Client,
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { GatewayError } from "../../base/errors.ts";
import {
  asksTooOften,
  type JsonObject,
  mostAskedBack,
  type ToolAnswer,
  type ToolExchange,
} from "../../domain/tools/tool-link.ts";
import { Call, type CallBounds, currentCall } from "./call.ts";
import { type Line, SessionLost } from "./line.ts";
import { ServerNews } from "./server-news.ts";

export interface ConnectionOptions {
  readonly bounds: CallBounds;
  /** Version of the gateway. */
  readonly version: string;
  /** Wait until it is ready, and for an answer to the question which revision it speaks. */
  readonly connectMs: number;
  readonly probeMs: number;
  /** Nobody wants it any more. */
  readonly signal: AbortSignal;
  /** It is known to speak no revision without sessions. */
  readonly isLegacy: boolean;
  /** What it tells beside any request. */
  readonly onNews: (method: string, params: JsonObject) => void;
}

export const connectTimeoutMs = 30_000;
/** Questions of a server in the middle of one call that wait for the client. */
const mostAsking = 16;
const [methodNotFound, internalError] = [-32_601, -32_603];
/** What the gateway and its clients can be asked for in the middle of a call; a session says it once for all. */
const capabilities = { elicitation: { form: {} }, sampling: {} };
const meta = (name: string) => `io.modelcontextprotocol/${name}`;

export class Connection {
  readonly isLegacy: boolean;
  readonly revision: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  readonly news: ServerNews | undefined;
  readonly #line: Line;
  readonly #client: Client;
  readonly #options: ConnectionOptions;
  readonly #clientInfo: { name: string; version: string };
  readonly #calls = new Map<string | number, Call>();
  #lastId = 0;
  /** Requests that have not come to their end, be it that nothing is under way for them. */
  #open = 0;
  #hasEnded = false;
  #isRetired = false;

  /** Rejects with a GatewayError, the line closed. */
  static async open(line: Line, options: ConnectionOptions): Promise<Connection> {
    const clientInfo = { name: "headrace", version: options.version };
    const client = new Client(clientInfo, {
      capabilities,
      versionNegotiation: { mode: "auto", probe: { timeoutMs: options.probeMs } },
    });
    const prior = options.isLegacy ? { prior: { kind: "legacy" } as const } : {};
    // Before the client has it, the line is all that can be ended.
    const stop = () => void line.close();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      stop();
    }, options.connectMs);
    options.signal.addEventListener("abort", stop);
    try {
      options.signal.throwIfAborted();
      await client.connect(line.transport, { timeout: options.connectMs, ...prior });
      return new Connection(line, client, clientInfo, options);
    } catch (error) {
      const { server } = options.bounds;
      const fault = isLate ? notReady(server) : (line.fault() ?? faultOf(error, server));
      await client.close().catch(() => {});
      await line.close();
      throw fault;
    } finally {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", stop);
    }
  }

  private constructor(
    line: Line,
    client: Client,
    clientInfo: { name: string; version: string },
    options: ConnectionOptions,
  ) {
    this.#line = line;
    this.#client = client;
    this.#clientInfo = clientInfo;
    this.#options = options;
    this.isLegacy = client.getProtocolEra() !== "modern";
    this.revision = client.getNegotiatedProtocolVersion() ?? "";
    this.capabilities = { ...client.getServerCapabilities() };
    this.serverInfo = { ...client.getServerVersion() };
    this.instructions = client.getInstructions();
    this.news = this.isLegacy ? undefined : new ServerNews(client, this.capabilities);
    const { transport } = line;
    const inner = transport.onmessage;
    transport.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => {
      if (!this.#took(message)) inner?.(message, extra);
    };
    client.onclose = () => this.#end();
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#isRetired;
  }

  /** Rejects with a SessionLost where the server has forgotten the session, else as `ToolLink` says. */
  async request(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    if (this.hasEnded) throw this.#lost();
    this.#open++;
    try {
      let answer = await this.#round(method, params, exchange);
      for (;;) {
        const next = "result" in answer ? await exchange.next?.(answer.result) : undefined;
        if (!next) return answer;
        answer = await this.#round(next.method, next.params, exchange).catch((error: unknown) => {
          // Something of it was done: it must not be begun anew in another session.
          throw error instanceof SessionLost ? this.#lost() : error;
        });
      }
    } finally {
      this.#open--;
      if (this.#isRetired) this.retire();
    }
  }

  async #round(method: string, params: JsonObject, exchange: ToolExchange): Promise<ToolAnswer> {
    exchange.cancellation.throwIfCancelled();
    if (this.#hasEnded) throw this.#lost();
    const subscribed = this.news?.answer(method, params);
    if (subscribed) return subscribed;
    const id = `call-${++this.#lastId}`;
    const abort = new AbortController();
    const { _meta } = params;
    const given = isObject(_meta) ? _meta : {};
    const { progressToken } = given;
    const call = new Call(exchange, this.#options.bounds, { method, progressToken }, (isAnswered) => {
      this.#calls.delete(id);
      if (!isAnswered) {
        this.#cancel(id);
        abort.abort();
      }
    });
    this.#calls.set(id, call);
    const sent = { ...params, _meta: this.#metaOf(given, exchange, id) };
    currentCall.run(call, () => void this.#send(call, { jsonrpc: "2.0", id, method, params: sent }, abort.signal));
    return await call.answered;
  }

  /** Takes nothing more, and closes once nothing is under way. */
  retire(): void {
    this.#isRetired = true;
    if (this.#open === 0 && !this.#hasEnded) void this.close();
  }

  /** Fails what is under way. Never rejects. */
  async close(): Promise<void> {
    this.#end();
    await this.#line.close();
    await this.#client.close().catch(() => {});
  }

  #metaOf(given: JsonObject, { clientCapabilities = {}, notified }: ToolExchange, id: string): JsonObject {
    // A token of our own: those of clients are not unique here, and without one there is no progress to see that it works.
    const own = notified ? { ...given, progressToken: id } : given;
    if (this.isLegacy) return own;
    return {
      [meta("protocolVersion")]: this.revision,
      [meta("clientInfo")]: this.#clientInfo,
      [meta("clientCapabilities")]: clientCapabilities,
      ...own,
    };
  }

  async #send(call: Call, message: JSONRPCMessage, requestSignal: AbortSignal): Promise<void> {
    const { transport } = this.#line;
    const headers = call.exchange.headers;
    try {
      await transport.send(message, {
        requestSignal,
        onRequestStreamEnd: () => call.fail(this.#lost()),
        ...(headers && { headers }),
      });
      // All of the answer was read by then, and it was none to this.
      if (transport.hasPerRequestStream && !call.isStreamed && !call.isOver) call.fail(this.#lost());
    } catch (error) {
      this.#notSent(call, error);
    }
  }

  #notSent(call: Call, error: unknown): void {
    const status = error instanceof SdkHttpError ? error.data.status : undefined;
    const answer = error instanceof SdkHttpError ? errorIn(error.data["text"]) : undefined;
    if (this.isLegacy && status === 404 && this.#line.transport.sessionId !== undefined) {
      // Others that are under way hear of it themselves.
      this.#isRetired = true;
      call.fail(new SessionLost());
    } else if (answer) call.answer(answer);
    else call.fail(faultOf(error, this.#options.bounds.server));
  }

  /** Nobody wants its answer any more. */
  #cancel(requestId: string): void {
    if (this.#hasEnded || (!this.isLegacy && this.#line.transport.hasPerRequestStream)) return;
    const params = { requestId, reason: "The caller left, or waited for too long." };
    this.#tell({ jsonrpc: "2.0", method: "notifications/cancelled", params });
  }

  /** Says something for which nothing is waited. */
  #tell(message: JSONRPCMessage): void {
    currentCall.exit(() => void this.#line.transport.send(message).catch(() => {}));
  }

  /** Whether it is none that the protocol's client has to see. */
  #took(message: JSONRPCMessage): boolean {
    if (isJSONRPCResultResponse(message)) return this.#answered(message.id, { result: message.result });
    if (isJSONRPCErrorResponse(message)) return this.#answered(message.id, { error: message.error });
    const params: JsonObject = message.params ?? {};
    if (isJSONRPCRequest(message)) {
      if (message.method === "ping") return false;
      if (this.isLegacy) void this.#asked(message.id, message.method, params);
      return true;
    }
    if (!isJSONRPCNotification(message)) return true;
    const { method } = message;
    if (method === "notifications/progress") this.#progressed(params);
    else if (method === "notifications/message") this.#tellCaller(this.#callOfMessage(), method, params);
    else {
      if (!own.has(method)) this.#options.onNews(method, params);
      return false;
    }
    return true;
  }

  #answered(id: string | number | undefined, answer: ToolAnswer): boolean {
    const call = id === undefined ? undefined : this.#calls.get(id);
    call?.answer(answer);
    return call !== undefined;
  }

  #progressed(params: JsonObject): void {
    const token = params["progressToken"];
    const call = typeof token === "string" ? this.#calls.get(token) : undefined;
    if (!call) return;
    call.prolong();
    const { progressToken } = call;
    if (progressToken !== undefined) this.#tellCaller(call, "notifications/progress", { ...params, progressToken });
  }

  #tellCaller(call: Call | undefined, method: string, params: JsonObject): void {
    if (!call) return;
    // Over HTTP the bytes of its stream are counted as they come.
    const isCounted = this.#line.transport.hasPerRequestStream === true;
    const refusal = isCounted ? undefined : call.hold(JSON.stringify(params).length);
    if (refusal) call.fail(refusal);
    else call.exchange.notified?.(method, params);
  }

  /** The call on whose stream it came, or the only one there is: what could be for several is for nobody. */
  #callOfMessage(): Call | undefined {
    const call = currentCall.getStore();
    if (call) return call.isOver ? undefined : call;
    const [only] = this.#calls.values();
    return this.#calls.size === 1 ? only : undefined;
  }

  async #asked(id: string | number, method: string, params: JsonObject): Promise<void> {
    const call = this.#callOfMessage();
    const ask = call?.exchange.asked;
    if (!call || !ask || call.asking >= mostAsking) {
      const message = call ? "The client cannot be asked that." : "It cannot be told by which call this is asked.";
      this.#tell({ jsonrpc: "2.0", id, error: { code: methodNotFound, message } });
      return;
    }
    if (++call.asked > mostAskedBack) {
      call.fail(asksTooOften(this.#options.bounds.server));
      return;
    }
    call.asking++;
    call.prolong();
    try {
      this.#tell({ jsonrpc: "2.0", id, result: { ...(await ask(method, params)) } });
    } catch (error) {
      this.#tell({ jsonrpc: "2.0", id, error: rpcErrorOf(error) });
    } finally {
      call.asking--;
      call.prolong();
    }
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.news?.close();
    for (const call of [...this.#calls.values()]) call.fail(this.#lost());
  }

  #lost(): GatewayError {
    const { server } = this.#options.bounds;
    const message = `The server of tools "${server}" ended the connection without an answer.`;
    // Over HTTP each request has an own way to fail.
    const fault = this.#line.transport.hasPerRequestStream ? undefined : this.#line.fault();
    return fault ?? new GatewayError("upstream_error", message);
  }
}

/** What only the protocol's client needs. */
const own = new Set(["notifications/cancelled", "notifications/subscriptions/acknowledged"]);

function notReady(server: string): GatewayError {
  return new GatewayError("upstream_timeout", `The server of tools "${server}" did not become ready in time.`);
}

function faultOf(error: unknown, server: string): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return notReady(server);
  }
  const detail = error instanceof Error ? error.message : String(error);
  const status = error instanceof SdkHttpError ? error.data.status : undefined;
  const what =
    status === undefined
      ? "could not be reached, or gave no answer of the protocol"
      : status === 401 || status === 403
        ? `refuses the credentials of this gateway with status ${status}`
        : `answered with status ${status}`;
  return new GatewayError("upstream_error", `The server of tools "${server}" ${what}.`, {
    detail: detail.slice(0, 500),
  });
}

/** The error of JSON-RPC that the body of an answer with another status than 200 is; undefined: it is none. */
function errorIn(text: unknown): ToolAnswer | undefined {
  try {
    const message: unknown = typeof text === "string" ? JSON.parse(text) : undefined;
    return isJSONRPCErrorResponse(message) ? { error: message.error } : undefined;
  } catch {
    return undefined;
  }
}

function rpcErrorOf(error: unknown): { code: number; message: string; data?: unknown } {
  if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") {
    // Whatever went wrong here is not the server's to know.
    return { code: internalError, message: "The client could not answer." };
  }
  const { code, message, data } = error;
  return { code: Number(code), message, ...(data !== undefined && { data }) };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
