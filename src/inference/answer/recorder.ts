// Decides whether an answer is stored, and creates the recorder that stores it.
import type { Account } from "../../domain/account.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { InferenceCall, InferenceDeps } from "../call.ts";
import type { AnswerRecorder } from "./answer-recorder.ts";
import { ChatRecorder } from "./chat-recorder.ts";
import { ResponseRecorder } from "./response-recorder.ts";

/**
 * Reports whether the answer is stored. If answers are kept for zero days, none is stored. Otherwise the request
 * decides. By default, responses are stored. By default, chats are stored only if the account's setting says so.
 */
export function wantsStoring(
  account: Pick<Account, "storeChats">,
  { store, dialect }: { store: DecodedRequest["store"]; dialect: Pick<DecodedRequest["dialect"], "isStoredByDefault"> },
  retentionDays: number,
): boolean {
  if (retentionDays === 0) return false;
  return store ?? (dialect.isStoredByDefault || account.storeChats);
}

/**
 * Returns a recorder, or undefined if the answer is not stored. Throws `invalid_request` if the metadata
 * exceeds the limits. `model` is the public id of the model.
 */
export function recorderFor(
  { principal, request, memoryAccount }: Pick<InferenceCall<unknown>, "principal" | "request" | "memoryAccount">,
  model: string,
  { chatWriter, responseKeeper }: Pick<InferenceDeps, "chatWriter" | "responseKeeper">,
): AnswerRecorder | undefined {
  const { kept } = request.dialect;
  if (!kept) return undefined;
  const { retentionDays } = kept.as === "chat" ? chatWriter : responseKeeper;
  if (!wantsStoring(principal.account, request, retentionDays)) return undefined;
  const options = { principal, request, model, memoryAccount, kept };
  return kept.as === "chat"
    ? new ChatRecorder({ ...options, writer: chatWriter })
    : new ResponseRecorder({ ...options, keeper: responseKeeper });
}
