// Reads the boundary of a form from the header `Content-Type` of the request (RFC 7578, 4.1; RFC 2046, 5.1.1).
import { GatewayError, invalidRequest } from "../base/errors.ts";

const formType = /^multipart\/form-data[ \t]*(?:;|$)/i;
/** Matches a `Content-Type` that all parsers understand in the same way: with one boundary, and at most a charset. */
const boundaryField =
  /^multipart\/form-data[ \t]*;[ \t]*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export function isForm(contentType: string | null): boolean {
  return contentType !== null && formType.test(contentType);
}

/**
 * Returns the boundary. Throws `unsupported_media_type` if the body is no form, and `invalid_request` if the boundary
 * is missing or ambiguous.
 */
export function boundaryOf(contentType: string | null): string {
  if (!isForm(contentType)) {
    throw new GatewayError(
      "unsupported_media_type",
      "Send the body as a form: multipart/form-data, as SDKs do for files.",
    );
  }
  const [, quoted, token] = boundaryField.exec(contentType as string) ?? [];
  const boundary = quoted ?? token;
  if (boundary !== undefined) return boundary;
  throw invalidRequest(
    "The header Content-Type has no boundary that can be used. Send multipart/form-data; boundary=… with 1 to 70 characters, as HTTP clients set it by themselves.",
  );
}
