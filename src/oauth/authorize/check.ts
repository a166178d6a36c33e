// Types of the checks of an authorization request: the request, and its possible errors.
import type { PublishedApp } from "../../domain/people/app.ts";
import type { Parameters } from "./parameters.ts";

/** An authorization request whose client and redirect URI are known. */
export interface ClientRequest {
  parameters: Parameters;
  app: PublishedApp;
  redirectUri: string;
  /** The public URL without a trailing slash. */
  issuer: string;
}

/** Errors by RFC 6749, 4.1.2.1, and RFC 8707, 2; and OpenID Connect Core, 3.1.2.6, for RFC 9101 and `prompt`. */
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

/** An error for the app. `description` is for its developer; ASCII without quotes and backslashes. */
export interface Fault {
  error: AuthorizeError;
  description: string;
}

export type Check = (request: ClientRequest) => Fault | undefined;

/**
 * An error that is shown on our own page, because nothing may be sent to the app. The page shows the text after a
 * colon, for the app's developer.
 */
export interface PageFault {
  message: string;
  /** The reason for the log. */
  reason: string;
}
