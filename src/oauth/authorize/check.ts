// The input of a check of an authorization request, and its result.
import type { PublishedApp } from "../../domain/people/app.ts";
import type { Parameters } from "./parameters.ts";

/** A request whose client and redirect address are known. */
export interface ClientRequest {
  parameters: Parameters;
  app: PublishedApp;
  redirectUri: string;
  /** The public URL, without a slash at its end. */
  issuer: string;
}

/** RFC 6749, 4.1.2.1; RFC 8707, 2; OpenID Connect Core, 3.1.2.6 for what RFC 9101 and `prompt` need. */
export type AuthorizeError =
  | "invalid_request"
  | "unauthorized_client"
  | "access_denied"
  | "unsupported_response_type"
  | "invalid_scope"
  | "invalid_target"
  | "request_not_supported"
  | "request_uri_not_supported"
  | "consent_required"
  | "interaction_required";

/** `description`: for the developer of the app; ASCII without quotes and backslashes. */
export interface Fault {
  error: AuthorizeError;
  description: string;
}

export type Check = (request: ClientRequest) => Fault | undefined;

/**
 * A fault because of which nothing may be sent to the app: shown to the person, after a colon, for the app's developer.
 */
export interface PageFault {
  message: string;
  /** For the log. */
  reason: string;
}
