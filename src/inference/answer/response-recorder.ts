// Stores a response together with the items of its request, because later requests continue from both.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ResponseKeeper } from "../../domain/models/response-keeper.ts";
import type { ResponseStatus, StoredResponse } from "../../domain/models/stored-response.ts";
import { keyOf, makerOf, type Principal } from "../../domain/principal.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { KeptAnswers } from "../../requests/dialects/answer.ts";
import { ownItems } from "../../requests/dialects/response/kept-items.ts";
import { type AnswerEnd, AnswerRecorder, secondsPerDay } from "./answer-recorder.ts";

export interface ResponseRecorderOptions {
  principal: Principal;
  request: DecodedRequest;
  /** Public id of the model, even if the client used an alias. */
  model: string;
  keeper: ResponseKeeper;
  memoryAccount: MemoryAccount;
  kept: KeptAnswers;
}

const ends: ReadonlySet<unknown> = new Set<ResponseStatus>(["completed", "incomplete", "failed"]);

/** Returns the status. Some servers omit it in a complete answer. */
function statusOf({ status }: Readonly<Record<string, unknown>>): ResponseStatus {
  return ends.has(status) ? (status as ResponseStatus) : "completed";
}

/**
 * Stores the response before the client gets its end. The next request, which may reach another replica, then finds the
 * response.
 */
export class ResponseRecorder extends AnswerRecorder {
  readonly #options: ResponseRecorderOptions;

  constructor(options: ResponseRecorderOptions) {
    super(options.kept, options.memoryAccount);
    this.#options = options;
  }

  /** Stores a failed response too, if the client received it as a response. */
  override keep({ createdAt, usage, outcome }: AnswerEnd): Promise<void> | undefined {
    const { principal, keeper } = this.#options;
    const response = this.answer(usage);
    const id = response?.["id"];
    if (response && typeof id === "string") return this.#store(this.#row(id, response, createdAt));
    this.takesBack = true;
    if (this.lost || outcome === "completed") keeper.notStored(principal.account.id, this.lost ?? "empty");
    return undefined;
  }

  async #store(row: StoredResponse): Promise<void> {
    this.takesBack = !(await this.#options.keeper.keep(row));
  }

  #row(id: string, response: Readonly<Record<string, unknown>>, createdAt: number): StoredResponse {
    const { principal, request, model, keeper } = this.#options;
    const { account, environment, appId } = principal;
    const { goesOn } = request;
    return {
      id,
      accountId: account.id,
      environment,
      keyId: keyOf(principal).id,
      appId,
      personId: keyOf(principal).personId,
      madeBy: makerOf(principal),
      model,
      createdAt,
      expiresAt: createdAt + keeper.retentionDays * secondsPerDay,
      status: statusOf(response),
      previousId: goesOn?.keptAfter ?? null,
      conversationId: goesOn?.conversationId ?? null,
      background: false,
      response,
      input: goesOn?.input ?? ownItems(request.body["input"]),
    };
  }
}
