// Checks elicitations of MCP servers. An elicitation by URL is allowed only if the client supports URL mode and the URL
// is https (or http on loopback).
import { GatewayError } from "../../base/errors.ts";
import type { JsonObject, ToolAnswer } from "../../domain/tools/client-session.ts";
import { isObject } from "./server-lists.ts";

/** Error code of a server that requires the user to open a page before the call (revision 2025-11-25). */
const urlElicitationRequired = -32_042;
const loopbackHost = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * Throws `upstream_error` for an elicitation by URL that the client does not support, or whose URL is neither https nor
 * http on loopback.
 */
export function requireElicitable(server: string, params: JsonObject, { elicitation }: JsonObject): void {
  // Without a mode, the elicitation is a form, which must not contain a URL.
  if (params["mode"] === undefined && params["url"] !== undefined) {
    throw unfit(server, "asks to open a page without the mode that says so");
  }
  if (params["mode"] !== "url") return;
  if (!isObject(elicitation) || elicitation["url"] === undefined) {
    throw unfit(server, "asks to open a page, which this client does not say that it can");
  }
  const { url } = params;
  if (typeof url !== "string" || !isPage(url)) throw unfit(server, "asks to open an address that is no https page");
}

/**
 * Checks each elicitation in an error of the server. Throws `upstream_error` if the client does not support it or its
 * URL is neither https nor http on loopback.
 */
export function requireElicitableError(server: string, answer: ToolAnswer, capabilities: JsonObject): void {
  if (!("error" in answer) || answer.error.code !== urlElicitationRequired) return;
  const { elicitations } = isObject(answer.error.data) ? answer.error.data : {};
  if (!Array.isArray(elicitations) || !elicitations.every(isObject)) {
    throw unfit(server, "asks to open pages, but its list of them cannot be read");
  }
  for (const one of elicitations) requireElicitable(server, { ...one, mode: "url" }, capabilities);
}

function isPage(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && loopbackHost.test(url.hostname));
}

function unfit(server: string, what: string): GatewayError {
  return new GatewayError("upstream_error", `The MCP server "${server}" ${what}. Nothing was opened.`);
}
