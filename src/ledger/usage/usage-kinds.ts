// Combinations of values that many requests share. Each is stored once, with its encoded text for the spool.
import type { UsageBegin, UsageEnd } from "../../domain/usage/usage.ts";

/** Values that are known when a request begins and that many requests share. */
export interface RequestKind extends Pick<UsageBegin, "environment" | "operation" | "model" | "stream"> {
  /** The values as UTF-8 text of a spool line: elements of a JSON array. */
  text: Uint8Array;
  /** The kinds of ended requests that began with these values. */
  ended: UsageKind[];
}

/** Values that are known when a request has ended and that many requests share. */
export interface UsageKind extends Pick<UsageEnd, "outcome" | "errorCode" | "estimated" | "capped" | "upstream"> {
  request: RequestKind;
  /** The UTF-8 text of all values. The values that are known when the request begins come first. */
  text: Uint8Array;
}

/** Maximum number of kinds. Beyond it, all are dropped and created again when needed; duplicates are harmless. */
const maxModels = 4_096;
const maxOfOne = 64;

const kinds = new Map<string, RequestKind[]>();

export function requestKindOf(begin: UsageBegin): RequestKind {
  let ofModel = kinds.get(begin.model);
  if (ofModel === undefined) {
    if (kinds.size >= maxModels) kinds.clear();
    ofModel = [];
    kinds.set(begin.model, ofModel);
  }
  for (const one of ofModel) {
    if (
      one.operation === begin.operation &&
      one.stream === begin.stream &&
      one.environment === begin.environment &&
      one.model === begin.model
    )
      return one;
  }
  const { environment, operation, model, stream } = begin;
  const text = valuesText([environment, operation, model, stream]);
  const kind: RequestKind = { environment, operation, model, stream, text, ended: [] };
  ofModel.push(kind);
  return kind;
}

export function usageKindOf(request: RequestKind, end: UsageEnd): UsageKind {
  for (const one of request.ended) {
    if (
      one.outcome === end.outcome &&
      one.upstream === end.upstream &&
      one.estimated === end.estimated &&
      one.errorCode === end.errorCode &&
      one.capped === end.capped
    )
      return one;
  }
  const { outcome, errorCode, estimated, capped, upstream } = end;
  const { environment, operation, model, stream } = request;
  const text = valuesText([environment, operation, model, stream, outcome, errorCode, estimated, capped, upstream]);
  const kind: UsageKind = { request, outcome, errorCode, estimated, capped, upstream, text };
  if (request.ended.length >= maxOfOne) request.ended.length = 0;
  request.ended.push(kind);
  return kind;
}

function valuesText(values: readonly unknown[]): Uint8Array {
  return Buffer.from(JSON.stringify(values).slice(1, -1));
}
