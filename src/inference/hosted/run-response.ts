// Runs a response that uses tools of MCP servers. The gateway makes the model calls, and the tool calls between them.

import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { encodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { fieldError, GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import type { Principal } from "../../domain/principal.ts";
import type { UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import { requireModel, requireScope } from "../../policy/authorize.ts";
import { decodeRequest } from "../../requests/decode/decode-request.ts";
import type { DecodedRequest, GoesOn } from "../../requests/decoded-request.ts";
import { comment } from "../../requests/dialects/keep-alive.ts";
import {
  type AskedServer,
  askedServers,
  type HostedTool,
  hasAllowed,
  isAllowed,
} from "../../requests/dialects/response/hosted/asked-servers.ts";
import {
  type CallResult,
  calledFunction,
  callItem,
  type Decided,
  listItem,
  notCalled,
  notKnown,
  readHostedItems,
  takenCall,
} from "../../requests/dialects/response/hosted/hosted-items.ts";
import { type HostedCall, HostedResponse } from "../../requests/dialects/response/hosted/hosted-response.ts";
import { functionName, OfferedTools } from "../../requests/dialects/response/hosted/offered-tools.ts";
import { isObject, type Json, objectsOf } from "../../requests/dialects/response/json.ts";
import { itemsForEngine, ownItems } from "../../requests/dialects/response/kept-items.ts";
import { failureCode } from "../../requests/dialects/response/reply-writer.ts";
import { responseBase, responseState } from "../../requests/dialects/response/response-object.ts";
import type { AnswerRecorder } from "../answer/answer-recorder.ts";
import { recorderFor } from "../answer/recorder.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../call.ts";
import { run } from "../run.ts";
import type { Stoppable } from "../stopping.ts";
import { keepsNothing } from "../whole-call.ts";
import type { HostedTools, ToolAsker } from "./model-tools.ts";
import { AgentStepCall } from "./turn-call.ts";
import { TurnStream } from "./turn-stream.ts";

/**
 * Maximum model calls of one response. In the last call the model must answer, because a model that only calls tools
 * would never end.
 */
const maxTurns = 50;
/** Maximum tool calls that run at the same time. */
const callsAtOnce = 8;
/** Maximum tools of one request, over all MCP servers. */
const maxTools = 512;
const nothingBefore: GoesOn = { previousId: null, keptAfter: null, conversationId: null, input: [] };

/** Runs a model request. If the request names MCP servers that the gateway knows, their tools run here. */
export function runResponse<Result>(call: InferenceCall<Result>, deps: InferenceDeps): MaybePromise<Result> {
  const { hosted } = deps;
  if (!hosted || !call.request.namesServers) return run(call, deps);
  const asked = askedServers(call.request.body);
  const names = asked.map((server) => hosted.tools.serverOf(call.principal, server));
  // The gateway knows none of these servers. The model server may reach them itself.
  if (asked.every(({ url }, index) => url !== undefined && names[index] === undefined)) return run(call, deps);
  const servers = asked.map((server, index) => [server, known(server, names[index])] as const);
  requireScope(call.principal, "tools:use");
  return new HostedRun(call, deps, hosted, servers).start();
}

function known({ label, url, place, hasCredential }: AskedServer, name: string | undefined): string {
  if (name === undefined) {
    const what = url === undefined ? `${place}.server_label` : `${place}.server_url`;
    throw fieldError(what, `must be a server that this gateway knows and you may use (got \`${url ?? label}\`).`);
  }
  if (hasCredential) {
    const rule = "must be left out: people connect accounts of their own at servers, and no credential is passed on.";
    throw fieldError(`${place}.authorization`, rule);
  }
  return name;
}

class HostedRun<Result> implements Stoppable {
  setIndex = noIndex;
  readonly #call: InferenceCall<Result>;
  readonly #deps: InferenceDeps;
  /**
   * The dependencies of the model calls. They do not store anything, because the whole response is stored once, at its
   * end.
   */
  readonly #turnDeps: InferenceDeps;
  readonly #hosted: HostedTools;
  readonly #servers: readonly (readonly [AskedServer, string])[];
  readonly #body: Json;
  readonly #asker: ToolAsker;
  /** Cancels tool calls when the client leaves or the server stops. */
  readonly #calling = new Cancellation();
  readonly #names: ReadonlyMap<string, string>;
  /** The input items of the next model call. */
  #items: Json[] = [];
  #offered: OfferedTools | undefined;
  #turns = 0;
  #calls = 0;
  /** True if the guardrails have let the first model call pass. */
  #isChecked = false;
  /** The tool choice of the current model call. */
  #choice: unknown;
  /** Number of bytes of tool results. */
  #bufferedBytes = 0;
  /** Releases the memory of the current request body. */
  #releaseBody = () => {};
  /** Token usage of all model calls so far. */
  #used: UsageEnd | undefined;
  #ended: { outcome: UsageOutcome; error: unknown } = { outcome: "completed", error: undefined };

  constructor(
    call: InferenceCall<Result>,
    deps: InferenceDeps,
    hosted: HostedTools,
    servers: readonly (readonly [AskedServer, string])[],
  ) {
    this.#call = call;
    const { chatWriter, responseKeeper } = keepsNothing;
    this.#deps = deps;
    this.#turnDeps = { ...deps, chatWriter, responseKeeper };
    this.#hosted = hosted;
    this.#servers = servers;
    this.#names = new Map(servers.map(([{ label }, name]) => [label, name]));
    this.#body = call.request.body;
    const { principal, memoryAccount, trace } = call;
    this.#asker = { principal, memoryAccount, clientGone: this.#calling, trace };
  }

  cancelled(): void {
    this.#calling.cancel(this.#call.clientGone.reason);
  }

  /** Stops the response. It does not wait for a running tool call. The next model call fails. */
  stop(error: GatewayError): void {
    this.#calling.cancel(error);
  }

  get caller(): Stoppable["caller"] {
    return this.#call.principal;
  }

  /**
   * Runs the response. If it fails, all listeners are removed, because a connection may have thousands of responses and
   * must not keep them in memory.
   */
  async start(): Promise<Result> {
    this.#call.clientGone.onCancel(this);
    this.#deps.stopping.add(this);
    try {
      return await this.#begin();
    } catch (error) {
      this.#release(undefined);
      throw error;
    }
  }

  async #begin(): Promise<Result> {
    const model = await this.#model();
    const { items, decided, lists } = readHostedItems(this.#body["input"]);
    const others = objectsOf(this.#body["tools"]).filter(({ type }) => type !== "mcp");
    const listed = await Promise.all(this.#servers.map(([asked, name]) => this.#list(asked, name, lists)));
    const offered = new OfferedTools(
      listed.map(([asked, { tools }]) => [asked, tools]),
      others,
    );
    const count = offered.size + others.length;
    if (count > maxTools)
      throw fieldError(
        "tools",
        `must be at most ${maxTools} with those of servers (got ${count}); name some in \`allowed_tools\`.`,
      );
    this.#offered = offered;
    const recorder = recorderFor(this.#call, model, this.#deps);
    const response = this.#response(model, offered, recorder !== undefined);
    for (const [{ label }, { tools, isNew }] of listed) if (isNew) response.addList(listItem(label, tools));
    this.#items = [...items];
    try {
      for (const one of decided) await this.#decide(one, offered, response);
      const first = await this.#turn(response);
      if (typeof first === "function")
        return this.#call.answer((client) => void this.#stream(client, first, response, recorder));
      return await this.#whole(first, response, recorder);
    } catch (error) {
      // If no tool was called yet, the client may repeat the request. After that, a repetition would call tools twice.
      if (this.#calls === 0 || this.#call.clientGone.cancelled) {
        this.#release(recorder);
        throw error;
      }
      return await this.#broken(error, response, recorder);
    }
  }

  /** Resolves to the id of the requested model. Rejects if the principal may not use the model. */
  async #model(): Promise<string> {
    const { catalog } = this.#deps;
    const { principal, request } = this.#call;
    if (!catalog.find(request.model)) await catalog.whenComplete();
    return requireModel(principal, catalog.find(request.model), request.model).id;
  }

  #response(model: string, offered: OfferedTools, isKept: boolean): HostedResponse {
    const { requestId, principal, request } = this.#call;
    const { dialect, goesOn, body } = request;
    const members = dialect.kept?.members(isKept, goesOn) ?? {};
    const created = this.#deps.clock.nowSeconds();
    const seal = this.#deps.sealFor(principal.account.id);
    const head = { id: dialect.idOf(requestId), model, created, promptTokens: 0, request: body, members, seal };
    const begun = { ...responseBase(head), ...responseState({ status: "in_progress", output: [] }) };
    return new HostedResponse({ offered, request: body, members, begun });
  }

  async #list(
    asked: AskedServer,
    name: string,
    lists: ReadonlyMap<string, readonly HostedTool[]>,
  ): Promise<readonly [AskedServer, { tools: readonly HostedTool[]; isNew: boolean }]> {
    const known = lists.get(asked.label);
    // A tool list that the conversation already contains is used again. Each tool call checks the right to call the
    // tool.
    if (known && hasAllowed(asked, known) && this.#hosted.tools.holds(known))
      return [asked, { tools: known, isNew: false }];
    const listed = await this.#hosted.tools.list(name, this.#asker);
    return [asked, { tools: listed.filter((tool) => isAllowed(asked, tool)), isNew: true }];
  }

  /** Runs a tool call that the client has approved. */
  async #decide(one: Decided, offered: OfferedTools, response: HostedResponse) {
    const { requestId, label, name, arguments: args } = one;
    const item = callItem(label, name, { arguments: args, approvedBy: requestId });
    const instead = offered.named(label, name)
      ? await this.#taken(one, String(item["id"]))
      : notCalled("The tool is not there any more.");
    const result = instead ?? (await this.#run(label, name, args));
    response.addApproved(item, result);
    this.#hold(result);
    const call = { callId: requestId, name: functionName(label, name), arguments: args };
    this.#items.push(...calledFunction({ ...call, output: result.output }));
  }

  /**
   * Uses up the approval of a tool call. If another response has already used the approval, returns the result of that
   * call, or an error if the result is not known.
   */
  async #taken({ requestId: approvalId, label, name }: Decided, callId: string): Promise<CallResult | undefined> {
    const { requestId, request } = this.#call;
    // The rights are checked first, because the call cannot be tried again once the approval is used.
    const principal = await this.#still();
    await this.#hosted.tools.permit(this.#serverOf(label), name, { ...this.#asker, principal });
    this.#calling.throwIfCancelled();
    const call = { callId, responseId: request.dialect.idOf(requestId) };
    const taken = await this.#hosted.approved.take(principal, approvalId, call);
    return taken && takenCall(taken.responseId, taken.item);
  }

  async #run(label: string, tool: string, args: string): Promise<CallResult> {
    // Do not start a call after cancellation: its outcome would be unknown.
    this.#calling.throwIfCancelled();
    this.#calls++;
    const parsed = parsedArguments(args);
    if (!parsed) return notCalled("The arguments are no JSON object.");
    const asker = { ...this.#asker, principal: await this.#still() };
    try {
      return await this.#hosted.tools.call(this.#serverOf(label), tool, parsed, asker);
    } catch (error) {
      if (this.#call.clientGone.cancelled) throw error;
      return notCalled(notKnown);
    }
  }

  #serverOf(label: string): string {
    return this.#names.get(label) ?? label;
  }

  /**
   * Returns the principal with its current rights. Otherwise rights that were revoked during the response would still
   * apply.
   */
  async #still(): Promise<Principal> {
    const principal = await this.#hosted.still(this.#call.principal);
    requireScope(principal, "chat:write");
    requireScope(principal, "tools:use");
    return principal;
  }

  /** Counts the bytes of a tool result on the memory account until the response has ended. */
  #hold({ output }: CallResult): void {
    const bytes = Buffer.byteLength(output);
    const refusal = this.#call.memoryAccount.take("requests", bytes);
    if (refusal) throw refusal;
    this.#bufferedBytes += bytes;
  }

  /**
   * Makes a model call. The client's stream begins with the first call. Rejects if the key was revoked or has expired.
   */
  async #turn(response: HostedResponse): Promise<InferenceAnswer> {
    const { memoryAccount, requestId, request: asked } = this.#call;
    const principal = await this.#still();
    this.#choice = this.#choiceOf(this.#offered as OfferedTools);
    const body = JSON.stringify(this.#turnBody(response));
    this.#releaseBody();
    this.#releaseBody = () => {};
    const release = bufferedBytes.takeCopies(memoryAccount, Buffer.byteLength(body));
    if (typeof release !== "function") throw release;
    this.#releaseBody = release;
    const isFirst = this.#turns++ === 0;
    response.beginTurn();
    const request = decodeRequest("response", ByteSpan.of(body), this.#hosted.requestLimits());
    const { goesOn = nothingBefore } = asked;
    // Only the first model call gets the client's items separately, so that guardrails can mask them before they are
    // stored.
    request.goesOn = { ...goesOn, input: isFirst ? ownInput(asked) : [] };
    const turnId = isFirst ? requestId : `req_${Bun.randomUUIDv7()}`;
    if (!isFirst) this.#call.trace?.asked(request, turnId);
    return await run(
      new AgentStepCall(this.#call, {
        ...{ request, principal, isFirst, requestId: turnId },
        masked: (one) => {
          if (isFirst) this.#keepInput(one.goesOn?.input ?? []);
        },
        begun: () => {
          this.#isChecked = true;
        },
        ended: (outcome, usage, error) => this.#turnEnded(outcome, usage, error),
      }),
      this.#turnDeps,
    );
  }

  /** Sets the client's items as they will be stored. The recorder reads these items from the request. */
  #keepInput(input: GoesOn["input"]): void {
    const { request } = this.#call;
    request.goesOn = { ...(request.goesOn ?? nothingBefore), input };
    this.#call.request = request;
  }

  /**
   * Returns how many output tokens are left of `max_output_tokens`, which limits all model calls together. Returns
   * undefined without a limit.
   */
  #remainingTokens({ outputTokens }: HostedResponse): number | undefined {
    const { max_output_tokens: most } = this.#body;
    return typeof most === "number" ? most - outputTokens : undefined;
  }

  #turnBody(response: HostedResponse): Json {
    const { previous_response_id: _, conversation: __, background: ___, max_tool_calls: ____, ...body } = this.#body;
    const offered = this.#offered as OfferedTools;
    const include = new Set([
      ...(Array.isArray(body["include"]) ? body["include"] : []),
      "reasoning.encrypted_content",
    ]);
    return {
      ...body,
      tools: offered.asFunctions(objectsOf(body["tools"])),
      tool_choice: this.#choice,
      input: this.#items,
      include: [...include],
      max_output_tokens: this.#remainingTokens(response),
      store: false,
    };
  }

  /**
   * Returns the tool choice for the next model call. A forced choice applies only to the first call. Otherwise the
   * model could never answer.
   */
  #choiceOf(offered: OfferedTools): unknown {
    const { tool_choice: choice, max_tool_calls: most } = this.#body;
    if (this.#turns >= maxTurns || (typeof most === "number" && this.#calls >= most)) return "none";
    if (this.#turns > 0)
      return isObject(choice) && choice["type"] === "allowed_tools"
        ? { ...(offered.asChoice(choice) as Json), mode: "auto" }
        : choice === "none"
          ? "none"
          : "auto";
    return isObject(choice) ? offered.asChoice(choice) : (choice ?? "auto");
  }

  /**
   * Runs the tool calls that the model requested. Resolves to true if the model must be called again. `send` gets the
   * events.
   */
  async #goesOn(response: HostedResponse, send: (events: string) => void): Promise<boolean> {
    const { calls } = response;
    if (!response.isCompleted || calls.length === 0) return false;
    const outputs: Json[] = [];
    // The gateway enforces `parallel_tool_calls`, because some model servers ignore it.
    const atOnce = this.#body["parallel_tool_calls"] === false ? 1 : callsAtOnce;
    for (let at = 0; at < calls.length; at += atOnce) {
      const some = calls.slice(at, at + atOnce).map(async (one) => {
        const result = await this.#runWithin(one);
        send(response.endCall(one, result));
        this.#hold(result);
        return { type: "function_call_output", call_id: one.callId, output: result.output };
      });
      // If one call cannot be made, the results of the other calls are still sent.
      for (const result of await Promise.allSettled(some)) {
        if (result.status === "rejected") throw result.reason;
        outputs.push(result.value);
      }
    }
    // Some models request tools although the tool choice forbids this. Such a model is not called again.
    if (response.waitsForClient || this.#turns > maxTurns) return false;
    const remaining = this.#remainingTokens(response);
    if (remaining !== undefined && remaining < this.#call.request.dialect.minLimit(this.#body)) {
      response.stop("max_output_tokens");
      return false;
    }
    this.#items.push(...itemsForEngine(objectsOf(response.turnOutput)), ...outputs);
    return true;
  }

  async #runWithin({ offered, functionName, arguments: args }: HostedCall): Promise<CallResult> {
    const { max_tool_calls: most } = this.#body;
    if (typeof most === "number" && this.#calls >= most)
      return notCalled(`No more tools are called: max_tool_calls is ${most}.`);
    if (!this.#offered?.has(functionName)) return notCalled("There is no such tool.");
    if (!isStillAllowed(this.#choice, functionName)) return notCalled("It may not be called in this turn.");
    return await this.#run(offered.server.label, offered.tool.name, args);
  }

  async #whole(
    first: InferenceAnswer,
    response: HostedResponse,
    recorder: AnswerRecorder | undefined,
  ): Promise<Result> {
    for (let answer = first; ; answer = await this.#turn(response)) {
      response.takeWhole(JSON.parse(textOf(answer)) as Json);
      if (!(await this.#goesOn(response, () => {}))) break;
    }
    await this.#end(response, recorder);
    return this.#call.answer(truthfulWhole(response, recorder));
  }

  /** Ends a response that has failed. The client gets the part that exists. */
  async #broken(error: unknown, response: HostedResponse, recorder: AnswerRecorder | undefined): Promise<Result> {
    // If guardrails have not checked the client's items yet, the response is stored without them.
    if (!this.#isChecked) this.#keepInput([]);
    const last = await this.#endBroken(error, response, recorder);
    // The failed model call may not be in the ledger. It is reported as recorded anyway, because tools were called and
    // waiting callers must continue.
    this.#call.onLedger();
    if (!this.#call.request.stream) return this.#call.answer(truthfulWhole(response, recorder));
    return this.#call.answer((client) => client.end(encodeByteText(last)));
  }

  async #stream(
    client: ClientStream,
    first: (client: ClientStream) => void,
    response: HostedResponse,
    recorder: AnswerRecorder | undefined,
  ): Promise<void> {
    const send = (events: string) => void client.write(encodeByteText(events));
    const beat = setInterval(() => client.write(comment), this.#deps.heartbeatMs);
    let last: string;
    try {
      let answer: InferenceAnswer = first;
      while (await this.#streamTurn(client, answer as (client: ClientStream) => void, response)) {
        if (!(await this.#goesOn(response, send))) break;
        answer = await this.#turn(response);
      }
      last = await this.#end(response, recorder);
    } catch (error) {
      last = await this.#endBroken(error, response, recorder);
    } finally {
      clearInterval(beat);
    }
    client.end(encodeByteText(last));
  }

  /** Streams one model call to the client. Resolves to false if the model's stream broke off or had no end. */
  async #streamTurn(
    client: ClientStream,
    answer: (client: ClientStream) => void,
    response: HostedResponse,
  ): Promise<boolean> {
    const { clientGone } = this.#call;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stream = new TurnStream(client, response, resolve);
    clientGone.onCancel(resolve);
    try {
      answer(stream);
      await promise;
    } finally {
      clientGone.off(resolve);
    }
    if (clientGone.cancelled) throw clientGone.reason;
    return response.hasEnded && !stream.isAborted;
  }

  #endBroken(error: unknown, response: HostedResponse, recorder: AnswerRecorder | undefined): Promise<string> {
    this.#ended = { outcome: this.#call.clientGone.cancelled ? "cancelled" : "failed", error };
    response.fail(...publicFailure(error));
    return this.#end(response, recorder);
  }

  /** Stores the response. Returns the last events of the stream, or nothing if the response has no end. */
  async #end(response: HostedResponse, recorder: AnswerRecorder | undefined): Promise<string> {
    const { outcome, error } = this.#ended;
    const last = response.hasEnded ? response.end() : "";
    // If a guardrail blocked the text of a tool result, the response contains that text, so it is not stored.
    const isKept = outcome !== "cancelled" && !(error instanceof GatewayError && error.code === "content_blocked");
    if (recorder && isKept && response.hasEnded) {
      recorder.addWhole(JSON.stringify(response.whole));
      const usage = this.#used ?? { promptTokens: 0, completionTokens: 0, estimated: true };
      await recorder.keep({ createdAt: this.#deps.clock.nowSeconds(), usage, outcome });
    }
    this.#release(recorder);
    if (this.#used) this.#call.onEnd(outcome, this.#used, error);
    return recorder?.truthful(last) ?? last;
  }

  #release(recorder: AnswerRecorder | undefined): void {
    recorder?.release();
    this.#call.clientGone.off(this);
    this.#deps.stopping.remove(this);
    this.#releaseBody();
    this.#releaseBody = () => {};
    if (this.#bufferedBytes > 0) this.#call.memoryAccount.release("requests", this.#bufferedBytes);
    this.#bufferedBytes = 0;
  }

  #turnEnded(outcome: UsageOutcome, usage: UsageEnd, error: unknown): void {
    const before = this.#used;
    this.#ended = { outcome, error };
    this.#used = before
      ? {
          ...usage,
          promptTokens: before.promptTokens + usage.promptTokens,
          completionTokens: before.completionTokens + usage.completionTokens,
          estimated: before.estimated || usage.estimated,
          nanoUsd: before.nanoUsd === null || usage.nanoUsd === null ? null : before.nanoUsd + usage.nanoUsd,
        }
      : usage;
  }
}

/** Reports whether the tool choice allows this function. Needed because some model servers ignore the tool choice. */
function isStillAllowed(choice: unknown, functionName: string): boolean {
  if (!isObject(choice) || choice["type"] !== "allowed_tools") return choice !== "none";
  return objectsOf(choice["tools"]).some(({ name }) => name === functionName);
}

function truthfulWhole(response: HostedResponse, recorder: AnswerRecorder | undefined): string {
  const text = JSON.stringify(response.whole);
  return recorder?.truthful(text) ?? text;
}

function ownInput({ goesOn, body }: DecodedRequest): GoesOn["input"] {
  return goesOn?.input ?? ownItems(body["input"]);
}

function publicFailure(error: unknown): [code: string, message: string] {
  if (!(error instanceof GatewayError)) return ["server_error", "The response could not go on."];
  const { engineCode = error.code, message } = error;
  return [failureCode(engineCode), message];
}

function parsedArguments(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function textOf(answer: InferenceAnswer): string {
  if (typeof answer === "string") return answer;
  if (typeof answer === "object" && "pieces" in answer) return wholeText(answer);
  throw new Error("A turn that was to be whole came as a stream.");
}

function wholeText(bytes: Bytes): string {
  return Buffer.concat(bytes.pieces).toString("utf8");
}
