// Compacts a long conversation: a model summarizes it, and the gateway returns the summary encrypted.
import { fieldError, GatewayError } from "../../../base/errors.ts";
import type { Principal } from "../../../domain/principal.ts";
import { dialects } from "../../../requests/dialects/dialects.ts";
import { compactionPrompt } from "../../../requests/dialects/response/compaction.ts";
import { isObject, type Json, objectsOf, textOf } from "../../../requests/dialects/response/json.ts";
import { decodeWhole, wholeInput } from "../../../responses/kept-input.ts";
import { readJsonBody } from "../../content/body.ts";
import type { Answer, Exchange } from "../../exchange/route.ts";
import { type InferenceRouteDeps, runFor } from "../inference-answer.ts";
import { responseOwnerOf } from "../response-owner.ts";

/** Answers POST /v1/responses/compact. The user's messages stay, and an encrypted summary replaces all other items. */
export async function compact(exchange: Exchange, principal: Principal, deps: InferenceRouteDeps): Promise<Answer> {
  const limits = deps.requestLimits();
  const { body } = await readJsonBody(exchange.req, limits);
  requireUnderstood(body);
  const { model, instructions, metadata, user, safety_identifier } = body;
  const { items, reservedBytes } = await itemsOf(body, exchange, principal, deps);
  const asked = {
    ...{ model, instructions, metadata, user, safety_identifier, store: false },
    input: Array.isArray(items)
      ? [...(items as unknown[]), { type: "message", role: "user", content: compactionPrompt }]
      : items,
  };
  const hold = (bytes: number) => exchange.req.hold(bytes);
  const request = decodeWhole("response", asked, { reservedBytes }, { limits, hold });
  const answer = await runFor(exchange, principal, request, deps);
  if (!("body" in answer) || answer instanceof Response || answer.status !== 200) return answer;
  const response = parsedResponse(answer.body);
  requireWhole(response);
  const summary = textIn(response);
  if (summary === "") {
    throw new GatewayError("upstream_error", "The model summed nothing up. Ask again, or ask another model.");
  }
  const id = `cmp_${exchange.requestId.replace(/^req_/, "")}`;
  const sealed = deps.sealFor(principal.account.id).seal(summary);
  const said = objectsOf(items).filter(({ role }) => role === "user");
  const kept = said.map((item, index) => messageItem(item, `msg_${id.slice("cmp_".length)}_${index}`));
  const compaction = {
    ...{ id: response["id"], object: "response.compaction", created_at: response["created_at"] },
    output: [...kept, { type: "compaction", id, encrypted_content: sealed }],
    usage: response["usage"],
  };
  return { ...answer, body: JSON.stringify(compaction) };
}

/** Throws if the summary is incomplete, because the client will drop the original conversation. */
function requireWhole({ status, headrace }: Json): void {
  if (status === undefined || status === "completed") return;
  if (headrace !== undefined) {
    throw new GatewayError("insufficient_quota", "What the quota has left is too little for the whole summary.");
  }
  const message = "The model did not end its summary. Ask again, or ask another model, or send a shorter conversation.";
  throw new GatewayError("upstream_error", message);
}

/** Returns a message as a response item, with defaults for missing members. */
function messageItem({ content, ...item }: Json, id: string): Json {
  const parts = typeof content === "string" ? [{ type: "input_text", text: content }] : content;
  return { id, status: "completed", ...item, type: "message", content: parts };
}

/** Returns the request's input items, preceded by the items of the response that it continues. */
async function itemsOf(
  { previous_response_id, input }: Json,
  { req }: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
): Promise<{ items: unknown; reservedBytes: number }> {
  const sent = input ?? (previous_response_id ? [] : undefined);
  const items = typeof sent === "string" ? [{ type: "message", role: "user", content: sent }] : sent;
  const named = { previous_response_id, input: items };
  if (!dialects.response.namesKept?.(named)) return { items, reservedBytes: 0 };
  await deps.admitter.refuseSpent(principal, { onLimits: () => {} });
  const hold = (bytes: number) => req.hold(bytes);
  const { whole, reservedBytes } = await wholeInput(named, deps, {
    ...{ owner: responseOwnerOf(principal), limits: deps.requestLimits(), hold },
  });
  return { items: whole, reservedBytes };
}

/** Validates only these two members, because the model request for the summary validates the others. */
function requireUnderstood({ previous_response_id: previous, conversation }: Json): void {
  const isGiven = (value: unknown) => value !== undefined && value !== null;
  if (isGiven(previous) && typeof previous !== "string") {
    throw fieldError("previous_response_id", "must be a string or null: the id of a kept response.");
  }
  if (isGiven(conversation)) {
    throw fieldError("conversation", "is not taken here: send the items of the conversation as `input`.");
  }
}

function parsedResponse(body: string | Uint8Array | { readonly solid: { readonly text: string } }) {
  const text = typeof body === "string" ? body : "solid" in body ? body.solid.text : Buffer.from(body).toString();
  const response: unknown = JSON.parse(text);
  return isObject(response) ? response : {};
}

function textIn(response: Readonly<Record<string, unknown>>): string {
  const parts = objectsOf(response["output"]).flatMap((item) => objectsOf(item["content"]));
  return parts.map((part) => (part["type"] === "output_text" ? (textOf(part["text"]) ?? "") : "")).join("");
}
