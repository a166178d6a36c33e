// The boundary of a form, by the field Content-Type of its request (RFC 7578, 4.1; RFC 2046, 5.1.1).
import { GatewayError, invalidRequest } from "../base/errors.ts";

const formType = /^multipart\/form-data[ \t]*(?:;|$)/i;
/** Only what all parsers agree on: one boundary, in quotes or as a token, and beside it a charset at most. */
const boundaryField =
  /^multipart\/form-data[ \t]*;[ \t]*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export function isForm(contentType: string | null): boolean {
  return contentType !== null && formType.test(contentType);
}

/** Throws `invalid_request` where there is none, or one that parsers read in different ways; `unsupported_media_type` for no form. */
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
