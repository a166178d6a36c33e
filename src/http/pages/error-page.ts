// What a person sees where a page cannot be shown.
import type { GatewayError } from "../../domain/errors.ts";
import type { PlainAnswer } from "../route.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";

const titles: Readonly<Record<number, string>> = {
  403: "Not allowed",
  404: "Not found",
  429: "Too many tries",
  500: "Something went wrong",
  503: "Not available at the moment",
};

export function errorPage(
  { message, retryAfterSeconds }: Pick<GatewayError, "message" | "retryAfterSeconds">,
  status: number,
  requestId: string,
): PlainAnswer {
  const title = titles[status] ?? "This cannot be done";
  const body = html`<h1>${title}</h1><p role="alert">${message}</p><p class="quiet">Request ${requestId}</p>`;
  const page = pageAnswer({ title, status, body });
  if (retryAfterSeconds === undefined) return page;
  return { ...page, headers: { ...page.headers, "retry-after": String(Math.ceil(retryAfterSeconds)) } };
}
