// Lists requests: merges ended and refused requests into one list.
import type { RefusedRequest, RefusedRequestStore } from "../../domain/usage/refused-request.ts";
import type { RequestFilter, RequestLog, RequestOwner, RequestPosition } from "../../domain/usage/request-log.ts";
import type { UsageOutcome, UsageRecord } from "../../domain/usage/usage.ts";

export type PastRequest = UsageRecord | RefusedRequest;

export interface HistoryFilter extends Omit<RequestFilter, "outcome"> {
  outcome?: UsageOutcome | "refused";
}

export interface HistoryPage {
  /** The requests of the page. There may be fewer than wanted, even none, before the end of the list. */
  requests: PastRequest[];
  next: RequestPosition | null;
}

export class RequestHistory {
  readonly #ended: RequestLog;
  readonly #refused: Pick<RefusedRequestStore, "list" | "find">;

  constructor(ended: RequestLog, refused: Pick<RefusedRequestStore, "list" | "find">) {
    this.#ended = ended;
    this.#refused = refused;
  }

  async find(owner: RequestOwner | null, requestId: string): Promise<PastRequest | undefined> {
    return (await this.#ended.find(owner, requestId)) ?? (await this.#refused.find(owner, requestId));
  }

  async list(
    { outcome, ...filter }: HistoryFilter,
    page: { after: RequestPosition | undefined; limit: number },
  ): Promise<HistoryPage> {
    // Refused requests have no tags, because tags are read only after admission, and were sent to no model server.
    const isNoneRefused = filter.tag !== undefined || filter.upstream !== undefined;
    if (outcome === "refused" && isNoneRefused) return { requests: [], next: null };
    if (outcome === "refused") {
      const { refused, next } = await this.#refused.list(filter, page);
      return { requests: refused, next };
    }
    const ended = await this.#ended.list(outcome === undefined ? filter : { ...filter, outcome }, page);
    if (outcome !== undefined || isNoneRefused) return { requests: ended.records, next: ended.next };
    const others = await this.#refused.list(filter, page);
    return joined(
      { requests: ended.records, next: ended.next },
      { requests: others.refused, next: others.next },
      page.limit,
    );
  }
}

/** Merges both pages, back to the time up to which both were searched. */
function joined(one: HistoryPage, other: HistoryPage, limit: number): HistoryPage {
  const next = later(one.next, other.next);
  const both = [...one.requests, ...other.requests]
    .filter((request) => next === null || newestFirst(request, next) <= 0)
    .sort(newestFirst);
  const requests = both.slice(0, limit);
  const last = requests.at(-1);
  return last && both.length > limit
    ? { requests, next: { at: last.at, requestId: last.requestId } }
    : { requests, next };
}

function later(one: RequestPosition | null, other: RequestPosition | null): RequestPosition | null {
  if (!one || !other) return one ?? other;
  return newestFirst(one, other) <= 0 ? one : other;
}

function newestFirst(a: RequestPosition, b: RequestPosition): number {
  return b.at - a.at || (a.requestId < b.requestId ? 1 : a.requestId > b.requestId ? -1 : 0);
}
