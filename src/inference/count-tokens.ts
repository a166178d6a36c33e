// Counts the tokens of a prompt. If an engine can count, it is asked. Otherwise the number is estimated.
import { Cancellation } from "../base/cancellation.ts";
import type { Deployment } from "../domain/models/model.ts";
import { isConversation } from "../domain/models/operation.ts";
import type { Principal } from "../domain/principal.ts";
import { requireModel, usableModel } from "../policy/authorize.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import { askingOf } from "./asking.ts";
import type { InferenceCall, InferenceDeps } from "./call.ts";
import { ownDeployments } from "./overflow/overflow.ts";

export interface TokenCount {
  tokens: number;
  /** True if the tokens are estimated from the text, because no engine counted them. */
  estimated: boolean;
}

/**
 * Maximum milliseconds to wait for a count. The client sends its prompt only after this, so an early estimate is better
 * than a late count.
 */
const maxMs = 10_000;

/**
 * Counts the tokens. Throws a GatewayError if the caller may not use the model. `mayAsk` is called once before an
 * engine is asked. If it returns false, the count is estimated.
 */
export async function countTokens(
  call: Pick<InferenceCall<unknown>, "principal" | "requestId" | "clientGone" | "memoryAccount"> & {
    request: DecodedRequest;
    mayAsk: () => Promise<boolean>;
  },
  deps: Pick<InferenceDeps, "catalog" | "sealFor">,
): Promise<TokenCount> {
  const { request, principal } = call;
  if (!deps.catalog.find(request.model)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(request.model), request.model);
  // A prompt with guardrails is not sent to an engine for counting, because the guardrails may block or mask it.
  if (model.policies?.guardrails || !(await call.mayAsk())) return { tokens: request.promptTokens, estimated: true };
  const cancellation = new Cancellation();
  const stop = () => cancellation.cancel(call.clientGone.reason);
  const timer = setTimeout(() => cancellation.cancel(new DOMException("It takes too long", "TimeoutError")), maxMs);
  call.clientGone.onCancel(stop);
  try {
    for (const { engine, model: engineModel } of ownDeployments(model)) {
      if (!engine.countTokens || engine.accepts === false) continue;
      // During the previous attempt, the operator may have changed the model.
      if (!isStillUsable({ engine, model: engineModel }, model.id, principal, deps)) continue;
      const seal = deps.sealFor(principal.account.id);
      const { operation, body, translation } = askingOf(request, {
        engine,
        model: engineModel,
        recording: false,
        seal,
      });
      if (!isConversation(operation)) continue;
      const { requestId, memoryAccount } = call;
      const messageHeaders = translation ? undefined : request.messageHeaders;
      const sent = { requestId, operation, model: engineModel, body, memoryAccount, messageHeaders };
      const tokens = await engine.countTokens(sent, cancellation).catch(() => undefined);
      if (tokens !== undefined) return { tokens, estimated: false };
      if (cancellation.cancelled) break;
    }
  } finally {
    clearTimeout(timer);
    call.clientGone.off(stop);
  }
  return { tokens: request.promptTokens, estimated: true };
}

function isStillUsable(
  { engine, model }: Pick<Deployment, "engine" | "model">,
  id: string,
  principal: Principal,
  { catalog }: Pick<InferenceDeps, "catalog">,
): boolean {
  if (!principal.modelAccess?.neverLeaves) return true;
  const now = catalog.get(id);
  const usable = now && usableModel(principal, now)?.deployments;
  return usable?.some((one) => one.engine === engine && one.model === model) ?? false;
}
