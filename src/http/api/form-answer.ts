// Answers a model request that is a multipart form with files. A large form is buffered on disk, and then sent
// to the model server.
import { invalidRequest } from "../../base/errors.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Principal } from "../../domain/principal.ts";
import { boundaryOf } from "../../multipart/boundary.ts";
import type { FormSettings } from "../../multipart/form-settings.ts";
import { type ReadForm, readForm } from "../../multipart/read-form.ts";
import { decodeForm } from "../../requests/decode/decode-form.ts";
import type { TaskForm } from "../../requests/dialects/task/task.ts";
import { bodyFault } from "../content/body.ts";
import { codingOf } from "../content/content-encoding.ts";
import { HandedOver } from "../exchange/handed-over.ts";
import type { Answer, Exchange } from "../exchange/route.ts";
import { addLimitHeaders, type InferenceRouteDeps, runFor } from "./inference-answer.ts";

/** Answers a form request. If it rejects with a GatewayError, everything that was buffered has been deleted. */
export async function answerForm(
  operation: Operation,
  form: TaskForm,
  exchange: Exchange,
  principal: Principal,
  deps: InferenceRouteDeps,
): Promise<Answer> {
  // If only another process buffers forms on disk, the request goes to that process before the form is read.
  if (!deps.forms) throw new HandedOver();
  const spent = deps.admitter.refuseSpent(principal, {
    onLimits: (status) => addLimitHeaders(operation, status, exchange, deps),
  });
  if (spent) await spent;
  const read = await formOf(exchange, principal, deps.forms);
  exchange.releaseWhenOver(read);
  const request = decodeForm(operation, read, form, deps.requestLimits());
  return await runFor(exchange, principal, request, deps);
}

async function formOf({ req }: Exchange, { account }: Principal, { space, limits }: FormSettings): Promise<ReadForm> {
  const boundary = boundaryOf(req.headers.get("content-type"));
  if (codingOf(req.headers.get("content-encoding"))) {
    throw invalidRequest("Send the form as it is, without Content-Encoding: its files are passed on as they come.");
  }
  const { formBytes, formMemoryBytes } = limits();
  const declared = Number(req.headers.get("content-length") ?? Number.NaN);
  const faultOf = (error: unknown) => bodyFault(error, formBytes);
  try {
    const source = req.flowBody(formBytes);
    const options = {
      ...{ space, accountId: account.id, memoryBytes: formMemoryBytes, boundary },
      hold: (bytes: number) => req.hold(bytes),
      // If the form is declared longer than the limit, no space is reserved, because it is refused anyway.
      declaredBytes: declared <= formBytes ? declared : undefined,
    };
    return await readForm(source, options, faultOf);
  } catch (error) {
    throw faultOf(error);
  }
}
