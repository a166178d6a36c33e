// Runs the sampling request of an MCP server as a chat request of the person or key that called the tool.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Model } from "../../domain/models/model.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ToolSampler } from "../../domain/tools/tool-use.ts";
import type { InferenceDeps } from "../../inference/call.ts";
import type { Catalog } from "../../inference/models/catalog.ts";
import { run } from "../../inference/run.ts";
import { keepsNothing, WholeCall, type WholeRequest } from "../../inference/whole-call.ts";
import { requireScope, usableModel } from "../../policy/authorize.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import { decodeRequest, type RequestLimits } from "../../requests/decode/decode-request.ts";
import { chatBodyOf, hintsOf, type Json, samplingResultOf } from "./sampling-request.ts";

export interface ModelSamplerOptions {
  inference: InferenceDeps;
  catalog: Pick<Catalog, "list">;
  openRequests: Pick<OpenRequests, "enter">;
  /** Returns the caller's current rights. Rejects with a GatewayError if they were revoked. */
  still(principal: Principal): Promise<Principal>;
  /** Returns the model to use if the MCP server names no usable one; undefined if there is none. */
  defaultModel(): string | undefined;
  /** Returns the limits of client requests, which also apply to sampling requests. */
  requestLimits(): RequestLimits;
  renderError(error: GatewayError): string;
  /** Records a request that was refused before it was in the ledger. */
  noteRefused(request: { requestId: string; model: string; principal: Principal }, error: GatewayError): void;
}

/** Maximum sampling requests during one tool call, so that a server in a loop does not spend the caller's budget. */
const maxOfCall = 16;
const maxAtOnce = 4;

interface Asked {
  count: number;
  running: number;
}

export class ModelSampler implements ToolSampler {
  readonly #options: ModelSamplerOptions;
  /** Number of sampling requests of each tool call. */
  readonly #asked = new WeakMap<AbortSignal, Asked>();

  constructor(options: ModelSamplerOptions) {
    this.#options = options;
  }

  async sample(caller: Principal, params: Json, signal: AbortSignal): Promise<Json> {
    // Check the rights again: a tool call may take long, and they may have been revoked.
    const principal = await this.#options.still(caller);
    requireScope(principal, "chat:write");
    const asked = this.#admit(signal);
    const slot = this.#options.openRequests.enter(principal);
    asked.count++;
    asked.running++;
    try {
      const model = await this.#modelFor(principal, params);
      return samplingResultOf(await this.#run(principal, slot.memoryAccount, chatBodyOf(params, model), signal), model);
    } finally {
      asked.running--;
      slot.release();
    }
  }

  #admit(signal: AbortSignal): Asked {
    const asked = this.#asked.get(signal) ?? { count: 0, running: 0 };
    this.#asked.set(signal, asked);
    if (asked.count < maxOfCall && asked.running < maxAtOnce) return asked;
    throw new GatewayError(
      "rate_limit_exceeded",
      `Within one call of a tool its server may ask a model at most ${maxOfCall} times, ${maxAtOnce} of them at once.`,
      { shouldRetry: false },
    );
  }

  async #run(principal: Principal, memoryAccount: MemoryAccount, body: Json, signal: AbortSignal): Promise<string> {
    const { inference, requestLimits, renderError, noteRefused } = this.#options;
    const text = JSON.stringify(body);
    const bytes = Buffer.byteLength(text);
    const refusal = memoryAccount.take("requests", bytes);
    if (refusal) throw refusal;
    const clientGone = new Cancellation();
    const leave = () => clientGone.cancel(signal.reason);
    signal.addEventListener("abort", leave);
    const requestId = `req_${Bun.randomUUIDv7()}`;
    let call: SampleCall | undefined;
    try {
      signal.throwIfAborted();
      const request = decodeRequest("chat", ByteSpan.of(text), requestLimits());
      call = new SampleCall({ requestId, principal, request, memoryAccount }, clientGone, renderError);
      // The response is not stored, because only the MCP server needs it.
      const { chatWriter, responseKeeper } = keepsNothing;
      return await run(call, { ...inference, chatWriter, responseKeeper });
    } catch (error) {
      const isNoted = error instanceof GatewayError && !call?.isOnLedger;
      if (isNoted) noteRefused({ requestId, model: String(body["model"]), principal }, error);
      throw error;
    } finally {
      signal.removeEventListener("abort", leave);
      memoryAccount.release("requests", bytes);
    }
  }

  /**
   * Returns the id of the first model that a hint names, or whose id contains a hint; else the default model. Rejects
   * with `model_not_found`.
   */
  async #modelFor(principal: Principal, params: Json): Promise<string> {
    const { inference, catalog, defaultModel } = this.#options;
    await inference.catalog.whenComplete();
    const isUsable = (model: Model) =>
      model.capabilities?.chat !== false && usableModel(principal, model) !== undefined;
    const hints = hintsOf(params);
    const usable = hints.length === 0 ? [] : catalog.list().filter(isUsable);
    for (const hint of hints) {
      const named = inference.catalog.find(hint);
      if (named && isUsable(named)) return named.id;
      const wanted = hint.toLowerCase();
      const alike = usable.find(({ id }) => id.toLowerCase().includes(wanted));
      if (alike) return alike.id;
    }
    const usual = defaultModel();
    const found = usual === undefined ? undefined : inference.catalog.find(usual);
    if (found && isUsable(found)) return found.id;
    const asked = hints.length === 0 ? "names no model" : `asks for ${hints.slice(0, 3).map(shownName).join(", ")}`;
    throw new GatewayError(
      "model_not_found",
      `The server ${asked}, and there is no model for that which this key may use, nor a default one. GET /v1/models lists the models of this key; an operator sets the default.`,
    );
  }
}

function shownName(hint: string): string {
  return `\`${shown(hint)}\``;
}

class SampleCall extends WholeCall {
  readonly clientGone: Cancellation;
  readonly onWanted = undefined;
  readonly renderError: ModelSamplerOptions["renderError"];
  isOnLedger = false;

  constructor(request: WholeRequest, clientGone: Cancellation, renderError: ModelSamplerOptions["renderError"]) {
    super(request);
    this.clientGone = clientGone;
    this.renderError = renderError;
  }

  override onLedger(): void {
    this.isOnLedger = true;
  }
}
